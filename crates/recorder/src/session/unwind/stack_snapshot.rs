//! Deep stacks as they were at an earlier sample of the same thread.
//!
//! The outer part of a deep stack changes rarely. The tail is read a little late, or not at all if
//! there is no time for it: if this sample's dump continues in the stack of the thread's previous
//! sample, the rest of that stack belongs to this sample, too. The unwinder decides; this file has
//! the bytes.

use crate::queue::message::StackTail;

/// A thread's stack at an earlier time.
#[derive(Debug, Default)]
pub(crate) struct StackSnapshot {
    /// The address of the first byte.
    start: u64,
    bytes: Vec<u8>,
    /// Its frames, the outermost last; empty if there were too many.
    frames: Vec<u64>,
}

/// A stack when its sample is unwound: the dump and the tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledStack<'a> {
    pub(crate) start: u64,
    pub(crate) dump: &'a [u8],
    pub(crate) tail: Option<(StackTail, &'a [u8])>,
}

impl SampledStack<'_> {
    /// The tail in two parts: the overlap, and the rest.
    fn tail_parts(&self) -> Option<(&[u8], &[u8])> {
        let (tail, bytes) = self.tail?;
        let dump_end = self.start.saturating_add(self.dump.len() as u64);
        let overlap = dump_end.checked_sub(tail.start)?;
        bytes.split_at_checked(usize::try_from(overlap).ok()?)
    }

    /// The bytes beyond the dump.
    fn rest(&self) -> &[u8] {
        self.tail_parts().map_or(&[], |(_, rest)| rest)
    }

    /// Whether the overlap is unchanged.
    pub(crate) fn joins(&self) -> bool {
        let overlap = self.tail_parts().map_or(&[][..], |(overlap, _)| overlap);
        self.dump.ends_with(overlap)
    }

    /// Whether the overlap is the same as at an earlier sample.
    pub(crate) fn joins_like(&self, earlier: &StackSnapshot) -> bool {
        let (Some((overlap, _)), Some((tail, _))) = (self.tail_parts(), self.tail) else {
            return false;
        };
        earlier.bytes_from(tail.start).starts_with(overlap)
    }

    /// Whether the tail was read at the moment of the sample.
    pub(crate) fn is_prompt(&self) -> bool {
        self.tail.is_some_and(|(tail, _)| tail.is_prompt)
    }
}

impl StackSnapshot {
    /// Replaces it by this stack, and its frames.
    pub(crate) fn replace(&mut self, now: &SampledStack<'_>, frames: &[u64]) {
        self.start = now.start;
        self.bytes.clear();
        self.bytes.extend_from_slice(now.dump);
        self.bytes.extend_from_slice(now.rest());
        self.frames.clear();
        self.frames.extend_from_slice(frames);
    }

    /// Bytes of memory that its stack uses.
    pub(crate) fn footprint(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether its outermost frames were these, as far as they are known.
    pub(crate) fn ends_in(&self, frames: &[u64]) -> bool {
        let mut both = self.frames.iter().rev().zip(frames.iter().rev());
        both.all(|(earlier, now)| earlier == now)
    }

    /// The bytes from `address` on.
    fn bytes_from(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.start);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        let bytes = offset.and_then(|offset| self.bytes.get(offset..));
        bytes.unwrap_or_default()
    }

    /// Copies the bytes from `address` on, and returns how many are known.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let bytes = self.bytes_from(address);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(start: u64, bytes: &[u8]) -> Option<(StackTail, &[u8])> {
        let tail = StackTail {
            start,
            length: bytes.len(),
            mapping: (0, u64::MAX),
            is_prompt: false,
        };
        Some((tail, bytes))
    }

    #[test]
    fn the_dump_and_its_tail_become_one_stack() {
        let mut earlier = StackSnapshot::default();
        let long = SampledStack {
            start: 90,
            dump: &[9; 40],
            tail: None,
        };
        earlier.replace(&long, &[]);
        let now = SampledStack {
            start: 100,
            dump: &[1, 2, 3, 4],
            tail: tail(102, &[3, 4, 5, 6]),
        };
        assert!(now.joins());
        earlier.replace(&now, &[]);
        let check = |address, expected: &[u8]| {
            let mut buffer = [0; 3];
            let count = earlier.read(address, &mut buffer);
            assert_eq!(&buffer[..count], expected, "{address}");
        };
        check(100, &[1, 2, 3]);
        check(103, &[4, 5, 6]);
        check(105, &[6]);
        check(106, &[]);
        check(99, &[]);
        check(u64::MAX, &[]);
    }

    #[test]
    fn stacks_end_alike_if_their_outermost_frames_do() {
        let check = |known: &[u64], frames: &[u64], expected| {
            let mut earlier = StackSnapshot::default();
            let now = SampledStack {
                start: 0,
                dump: &[],
                tail: None,
            };
            earlier.replace(&now, known);
            assert_eq!(earlier.ends_in(frames), expected, "{frames:?}");
        };
        check(&[4, 3, 2, 1], &[2, 1], true);
        check(&[4, 3, 2, 1], &[5, 4, 3, 2, 1], true);
        check(&[4, 3, 2, 1], &[5, 1], false);
        check(&[4, 3, 2, 1], &[2], false);
        check(&[], &[2, 1], true);
    }

    #[test]
    fn stacks_that_change_before_the_reading_do_not_join() {
        let now = SampledStack {
            start: 100,
            dump: &[1, 2, 3, 4],
            tail: tail(102, &[3, 5, 5, 6]),
        };
        assert!(!now.joins());
    }
}
