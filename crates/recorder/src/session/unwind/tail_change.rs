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
    is_ambiguous: bool,
    /// The last whole stacks that were accepted, and those before.
    accepted: AcceptedStacks,
    accepted_before: AcceptedStacks,
    /// Where the thread continued on another stack, and a number for its frames there.
    places: HashMap<u64, u64>,
    /// Whether one place continued in other frames at another sample.
    has_ambiguous_place: bool,
    /// The functions with large frames, and how many samples agreed about their callers.
    large_frames: HashMap<u64, Agreement>,
}

/// Stacks that were accepted as whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AcceptedStacks {
    /// The time of the first one.
    pub(crate) from: u64,
    pub(crate) count: u64,
    /// Whether one of them was not read in time.
    has_unproven: bool,
}

/// What the samples say of the callers of a function, each of which was read later.
#[derive(Debug, Default)]
struct Agreement {
    callers: Vec<u64>,
    samples: u32,
    has_ended: bool,
}

/// How a walk left the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Not, or into memory that continues it.
    Joined,
    /// To another stack, or to the other end of a large frame, with a number for the bytes of the
    /// dump that led there.
    Elsewhere(u64),
    /// To the other end of a large frame; only what it has called is unchanged.
    LargeFrame,
}

impl TailChange {
    /// The most places of a thread.
    const PLACES: usize = 256;

    /// A thread with alternating callers is known after some 35 samples. Of one that was not for
    /// longer, at least so many of the last are in doubt.
    const IN_DOUBT: u64 = 100;

    /// So many samples must agree before the callers of a function with a large frame are believed.
    const AGREEING: u32 = 8;

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

    /// Whether a stack shows that the dumps do not determine the frames of the tail. Returns the
    /// last stacks that were accepted before this was known, if one of them was not read in time.
    pub(crate) fn set_ambiguous(&mut self, is_ambiguous: bool) -> Option<AcceptedStacks> {
        let is_new = is_ambiguous && !self.is_ambiguous;
        self.is_ambiguous |= is_ambiguous;
        let (before, last) = (self.accepted_before, self.accepted);
        let is_in_doubt = is_new && (before.has_unproven || last.has_unproven);
        is_in_doubt.then_some(AcceptedStacks {
            from: if before.count > 0 {
                before.from
            } else {
                last.from
            },
            count: before.count + last.count,
            has_unproven: true,
        })
    }

    /// A stack of this time was accepted, whose tail `is_proven` to be of its moment, or not.
    pub(crate) fn accept(&mut self, time: u64, is_whole: bool, is_proven: bool) {
        if !is_whole {
            return;
        }
        if self.accepted.count == Self::IN_DOUBT {
            self.accepted_before = std::mem::take(&mut self.accepted);
        }
        if self.accepted.count == 0 {
            self.accepted.from = time;
        }
        self.accepted.count += 1;
        self.accepted.has_unproven |= !is_proven;
    }

    /// Whether the frames of this tail may be those of another moment. The `function` is that of
    /// the outermost frame before it; `whole` are its frames if all were found.
    pub(crate) fn may_differ(
        &mut self,
        departure: Departure,
        function: Option<u64>,
        whole: Option<&[u64]>,
    ) -> bool {
        match departure {
            Departure::Joined => self.is_ambiguous,
            Departure::Elsewhere(place) => self.is_ambiguous_place(place, whole),
            Departure::LargeFrame => {
                let known = function.zip(whole);
                !known.is_some_and(|(function, callers)| self.agrees(function, callers))
            }
        }
    }

    /// Whether it is unknown in which frames the thread continued on another stack. It did so from
    /// this place; the `frames` there, if all were found, were read later and may be those of
    /// another moment.
    fn is_ambiguous_place(&mut self, place: u64, frames: Option<&[u64]>) -> bool {
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

    /// Whether the callers of the function with a large frame at this address can be those of the
    /// sample's moment: enough samples agree, and none of the thread disagrees.
    fn agrees(&mut self, function: u64, callers: &[u64]) -> bool {
        if self.large_frames.len() >= Self::PLACES {
            self.large_frames.clear();
        }
        let known = self.large_frames.entry(function).or_default();
        if known.samples == 0 {
            known.callers = callers.to_vec();
        }
        known.samples = known.samples.saturating_add(1);
        known.has_ended |= known.callers != callers;
        known.samples > Self::AGREEING && !known.has_ended
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

    #[test]
    fn callers_beyond_a_large_frame_need_samples_that_agree() {
        let mut tail_change = TailChange::default();
        for _ in 0..TailChange::AGREEING {
            assert!(!tail_change.agrees(5, &[2, 1]));
        }
        assert!(tail_change.agrees(5, &[2, 1]));
        assert!(!tail_change.agrees(6, &[2, 1]));
        assert!(!tail_change.agrees(5, &[3, 1]));
        assert!(!tail_change.agrees(5, &[2, 1]));
    }

    #[test]
    fn stacks_before_the_contradiction_are_in_doubt_once() {
        let check = |proven: &[bool], expected: Option<(u64, u64)>| {
            let mut tail_change = TailChange::default();
            for (time, &is_proven) in (1..).zip(proven) {
                tail_change.accept(time, true, is_proven);
            }
            let doubted = tail_change.set_ambiguous(true);
            let doubted = doubted.map(|stacks| (stacks.from, stacks.count));
            assert_eq!(doubted, expected, "{proven:?}");
            tail_change.accept(1000, true, false);
            assert!(tail_change.set_ambiguous(true).is_none());
            assert!(tail_change.may_differ(Departure::Joined, None, None));
        };
        check(&[], None);
        check(&[true, true], None);
        check(&[true, false, true], Some((1, 3)));
        check(&[false; 150], Some((1, 150)));
        check(&[false; 250], Some((101, 150)));
    }
}
