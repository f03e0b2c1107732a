//! Whether the tail of a thread's stack changes from sample to sample, and whether the dump tells
//! which one it has.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The outermost frames of a thread at its last samples.
#[derive(Debug, Default)]
pub(crate) struct TailChange {
    frames: Vec<u64>,
    /// Whether the same bytes at the end of the dump continued in other frames at another sample,
    /// so that the dumps do not determine in which frames they continue.
    pub(crate) is_ambiguous: bool,
    /// Where the thread continued on another stack, and a number for its frames there.
    places: HashMap<u64, u64>,
    /// Whether one place continued in other frames at another sample.
    has_ambiguous_place: bool,
}

impl TailChange {
    /// The most places of a thread.
    const PLACES: usize = 256;

    /// Whether these frames, the outermost last, differ from those at the last sample, or are more
    /// than are known.
    pub(crate) fn changes(&mut self, frames: &[u64]) -> bool {
        let changes = !self.frames.ends_with(frames);
        if changes {
            self.frames.clear();
            self.frames.extend_from_slice(frames);
        }
        changes
    }

    /// Whether it is unknown in which frames the thread continued on another stack. It did so from
    /// this place; the `frames` there, if all were found, were read later and may be those of
    /// another moment.
    pub(crate) fn is_ambiguous_place(&mut self, place: u64, frames: Option<&[u64]>) -> bool {
        if let Some(frames) = frames {
            let mut hasher = DefaultHasher::new();
            frames.hash(&mut hasher);
            let frames = hasher.finish();
            if self.places.len() >= Self::PLACES {
                self.places.clear();
            }
            let known = *self.places.entry(place).or_insert(frames);
            self.has_ambiguous_place |= known != frames;
        }
        self.has_ambiguous_place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_frames_beyond_the_dump_are_noticed() {
        let mut threads = [TailChange::default(), TailChange::default()];
        let mut check = |thread: usize, frames: &[u64], expected| {
            let changes = threads[thread - 1].changes(frames);
            assert_eq!(changes, expected, "{thread}: {frames:?}");
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
        let mut threads = [TailChange::default(), TailChange::default()];
        let mut check = |thread: usize, place, frames: &[u64], expected| {
            let tail_change = &mut threads[thread - 1];
            tail_change.changes(frames);
            let is_ambiguous = tail_change.is_ambiguous_place(place, Some(frames));
            assert_eq!(is_ambiguous, expected, "{thread}, {place}: {frames:?}");
        };
        check(1, 10, &[2, 1], false);
        check(1, 20, &[3, 1], false);
        check(1, 10, &[2, 1], false);
        check(2, 10, &[3, 1], false);
        check(1, 10, &[3, 1], true);
        check(1, 20, &[3, 1], true);
        check(2, 10, &[3, 1], false);
    }
}
