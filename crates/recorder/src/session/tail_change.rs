//! Whether the outer part of deep stacks changes from sample to sample.

use prof_model::Tid;

/// The outermost frames of a few threads, as they were at the last sample.
#[derive(Debug, Default)]
pub(crate) struct TailChange {
    threads: Vec<(Tid, Vec<u64>)>,
}

impl TailChange {
    /// Threads remembered.
    const THREADS: usize = 64;

    /// Whether these frames, the outermost last, are others than at the last sample of the thread,
    /// or not known.
    pub(crate) fn change(&mut self, tid: Tid, frames: &[u64]) -> bool {
        if let Some((_, known)) = self.threads.iter_mut().find(|(of, _)| *of == tid) {
            let change = !known.ends_with(frames);
            if change {
                known.clear();
                known.extend_from_slice(frames);
            }
            return change;
        }
        if self.threads.len() >= Self::THREADS {
            let any = fastrand::usize(..self.threads.len());
            self.threads.swap_remove(any);
        }
        self.threads.push((tid, frames.to_vec()));
        true
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
                tail_change.change(tid, frames),
                expected,
                "{tid}: {frames:?}"
            );
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
            assert!(tail_change.change(tid, &[1]));
            assert!(!tail_change.change(tid, &[1]));
        }
        assert_eq!(tail_change.threads.len(), TailChange::THREADS);
    }
}
