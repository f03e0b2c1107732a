//! Whether the outer part of deep stacks changes from sample to sample, and whether their copies
//! tell one from the other.

use prof_model::Tid;

/// The outermost frames of a few threads, as they were at the last sample.
#[derive(Debug, Default)]
pub(crate) struct TailChange {
    threads: Vec<ThreadTail>,
}

/// How the outermost frames of a thread differ from those at the sample before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// More of them are beyond the copy, or there is nothing to compare them with.
    More,
    Others,
}

#[derive(Debug)]
struct ThreadTail {
    tid: Tid,
    frames: Vec<u64>,
    /// Whether they end at the root.
    is_whole: bool,
    /// The same bytes at the end of the copy went on in other frames at another sample.
    is_ambiguous: bool,
}

impl TailChange {
    /// Threads remembered.
    const THREADS: usize = 64;

    /// How these frames, the outermost last, compare with those at the last sample of the thread.
    pub(crate) fn change(&mut self, tid: Tid, frames: &[u64], is_whole: bool) -> Change {
        if let Some(thread) = self.of(tid) {
            let known = &mut thread.frames;
            // Of stacks that break off, nobody knows the outermost frames.
            let is_comparable = is_whole && thread.is_whole;
            let change = match (known.ends_with(frames), frames.ends_with(known)) {
                (true, _) => Change::None,
                (false, false) if is_comparable => Change::Others,
                (false, _) => Change::More,
            };
            if change != Change::None {
                known.clear();
                known.extend_from_slice(frames);
                thread.is_whole = is_whole;
            }
            return change;
        }
        if self.threads.len() >= Self::THREADS {
            let any = fastrand::usize(..self.threads.len());
            self.threads.swap_remove(any);
        }
        self.threads.push(ThreadTail {
            tid,
            frames: frames.to_vec(),
            is_whole,
            is_ambiguous: false,
        });
        Change::More
    }

    /// The thread's copies do not tell which frames they go on in.
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
    fn frames_change_if_others_or_more_are_beyond_the_copy() {
        let mut tail_change = TailChange::default();
        let mut check = |tid, frames: &[u64], expected| {
            assert_eq!(
                tail_change.change(tid, frames, true),
                expected,
                "{tid}: {frames:?}"
            );
        };
        check(1, &[3, 2, 1], Change::More);
        check(1, &[3, 2, 1], Change::None);
        check(1, &[2, 1], Change::None);
        check(1, &[4, 3, 2, 1], Change::More);
        check(1, &[5, 2, 1], Change::Others);
        check(2, &[5, 2, 1], Change::More);
        check(1, &[5, 2, 1], Change::None);
    }

    #[test]
    fn stacks_that_break_off_contradict_none() {
        let mut tail_change = TailChange::default();
        tail_change.change(1, &[3, 2, 1], true);
        assert_eq!(tail_change.change(1, &[5], false), Change::More);
        assert_eq!(tail_change.change(1, &[3, 2, 1], true), Change::More);
        assert_eq!(tail_change.change(1, &[4, 1], true), Change::Others);
    }

    #[test]
    fn few_threads_are_remembered() {
        let mut tail_change = TailChange::default();
        for tid in 0..1000 {
            assert_eq!(tail_change.change(tid, &[1], true), Change::More);
            assert_eq!(tail_change.change(tid, &[1], true), Change::None);
        }
        assert_eq!(tail_change.threads.len(), TailChange::THREADS);
    }
}
