//! Whether the outer part of deep stacks changes from sample to sample, and whether the dumps
//! distinguish them.

use prof_model::Tid;

/// The outermost frames of a few threads at their last samples.
#[derive(Debug, Default)]
pub(crate) struct TailChange {
    threads: Vec<ThreadTail>,
}

#[derive(Debug)]
struct ThreadTail {
    tid: Tid,
    frames: Vec<u64>,
    /// Whether the same bytes at the end of the dump continued in other frames at another sample.
    is_ambiguous: bool,
}

impl TailChange {
    /// The most threads.
    const THREADS: usize = 64;

    /// Whether these frames, the outermost last, differ from those at the last sample of the
    /// thread, or are more than are known.
    pub(crate) fn changes(&mut self, tid: Tid, frames: &[u64]) -> bool {
        if let Some(thread) = self.of(tid) {
            let changes = !thread.frames.ends_with(frames);
            if changes {
                thread.frames.clear();
                thread.frames.extend_from_slice(frames);
            }
            return changes;
        }
        if self.threads.len() >= Self::THREADS {
            let any = fastrand::usize(..self.threads.len());
            self.threads.swap_remove(any);
        }
        self.threads.push(ThreadTail {
            tid,
            frames: frames.to_vec(),
            is_ambiguous: false,
        });
        true
    }

    /// The thread's dumps do not determine in which frames they continue.
    pub(crate) fn set_ambiguous(&mut self, tid: Tid) {
        if let Some(thread) = self.of(tid) {
            thread.is_ambiguous = true;
        }
    }

    pub(crate) fn is_ambiguous(&mut self, tid: Tid) -> bool {
        self.of(tid).is_some_and(|thread| thread.is_ambiguous)
    }

    fn of(&mut self, tid: Tid) -> Option<&mut ThreadTail> {
        self.threads.iter_mut().find(|thread| thread.tid == tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_frames_beyond_the_dump_are_noticed() {
        let mut tail_change = TailChange::default();
        let mut check = |tid, frames: &[u64], expected| {
            let changes = tail_change.changes(tid, frames);
            assert_eq!(changes, expected, "{tid}: {frames:?}");
        };
        check(1, &[3, 2, 1], true);
        check(1, &[3, 2, 1], false);
        check(1, &[2, 1], false);
        check(1, &[4, 3, 2, 1], true);
        check(1, &[5, 2, 1], true);
        check(2, &[5, 2, 1], true);
        check(1, &[5, 2, 1], false);
    }

    #[test]
    fn few_threads_are_remembered() {
        let mut tail_change = TailChange::default();
        for tid in 0..1000 {
            assert!(tail_change.changes(tid, &[1]));
            assert!(!tail_change.changes(tid, &[1]));
        }
        assert_eq!(tail_change.threads.len(), TailChange::THREADS);
    }
}
