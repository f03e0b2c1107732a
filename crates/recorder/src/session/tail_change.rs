//! Whether the outer part of deep stacks changes from sample to sample, and whether the dumps
//! distinguish them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

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
    /// Where the thread continued on another stack, and a number for its frames there.
    places: HashMap<u64, u64>,
    /// Whether one place continued in other frames at another sample.
    has_ambiguous_place: bool,
}

impl TailChange {
    /// The most threads.
    const THREADS: usize = 64;
    /// The most places of a thread.
    const PLACES: usize = 256;

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
            places: HashMap::new(),
            has_ambiguous_place: false,
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

    /// Whether it is unknown in which frames the thread continued on another stack. It did so from
    /// this place; the `frames` there, if all were found, were read later and may be those of
    /// another moment.
    pub(crate) fn is_ambiguous_place(
        &mut self,
        tid: Tid,
        place: u64,
        frames: Option<&[u64]>,
    ) -> bool {
        let Some(thread) = self.of(tid) else {
            return false;
        };
        if let Some(frames) = frames {
            let mut hasher = DefaultHasher::new();
            frames.hash(&mut hasher);
            let frames = hasher.finish();
            if thread.places.len() >= Self::PLACES {
                thread.places.clear();
            }
            let known = *thread.places.entry(place).or_insert(frames);
            thread.has_ambiguous_place |= known != frames;
        }
        thread.has_ambiguous_place
    }

    /// Forgets a thread.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.threads.retain(|thread| thread.tid != tid);
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
    fn a_place_that_continues_in_two_ways_is_ambiguous() {
        let mut tail_change = TailChange::default();
        let mut check = |tid, place, frames: &[u64], expected| {
            tail_change.changes(tid, frames);
            let is_ambiguous = tail_change.is_ambiguous_place(tid, place, Some(frames));
            assert_eq!(is_ambiguous, expected, "{tid}, {place}: {frames:?}");
        };
        check(1, 10, &[2, 1], false);
        check(1, 20, &[3, 1], false);
        check(1, 10, &[2, 1], false);
        check(2, 10, &[3, 1], false);
        check(1, 10, &[3, 1], true);
        check(1, 20, &[3, 1], true);
        check(2, 10, &[3, 1], false);
    }

    #[test]
    fn the_next_thread_of_a_number_is_another_one() {
        let mut tail_change = TailChange::default();
        assert!(tail_change.changes(1, &[2, 1]));
        tail_change.set_ambiguous(1);
        tail_change.forget(1);
        assert!(tail_change.changes(1, &[2, 1]));
        assert!(!tail_change.is_ambiguous(1));
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
