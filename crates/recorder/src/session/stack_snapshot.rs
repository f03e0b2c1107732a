//! Deep stacks as they were at an earlier sample of the same thread.
//!
//! The outer part of a deep stack changes rarely. The tail is read a little late, or not at all if
//! there is no time for it: if this sample's dump continues in the stack of the thread's previous
//! sample, the rest of that stack belongs to this sample, too. The unwinder decides; this file has
//! the bytes.

use prof_model::Tid;

use crate::queue::message::StackTail;

/// The last whole deep stacks of a few threads.
#[derive(Debug)]
pub(crate) struct SnapshotCache {
    threads: Vec<StackSnapshot>,
    /// Bytes of memory that they use.
    bytes: usize,
    /// Bytes of memory that they may use, without the stack that was stored last.
    most_bytes: usize,
}

/// A thread's stack at an earlier time.
#[derive(Debug, Default)]
pub(crate) struct StackSnapshot {
    tid: Tid,
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

impl SnapshotCache {
    /// The most threads.
    const THREADS: usize = 64;
    /// The most bytes of all their stacks, by default. A stack of 5,000 frames takes 200,000.
    pub(crate) const USUAL_BYTES: usize = 16 << 20;

    /// A cache of at most this many bytes; 0 for none at all.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            threads: Vec::new(),
            bytes: 0,
            most_bytes,
        }
    }

    /// The stack of a thread.
    pub(crate) fn of(&self, tid: Tid) -> Option<&StackSnapshot> {
        self.threads.iter().find(|stack| stack.tid == tid)
    }

    /// Stores the stack of a thread, and its frames.
    pub(crate) fn remember(&mut self, tid: Tid, now: &SampledStack<'_>, frames: &[u64]) {
        if self.most_bytes == 0 {
            return;
        }
        let known = self.threads.iter().position(|stack| stack.tid == tid);
        let index = known.unwrap_or_else(|| {
            self.threads.push(StackSnapshot::default());
            self.threads.len() - 1
        });
        let Some(stack) = self.threads.get_mut(index) else {
            return;
        };
        stack.tid = tid;
        stack.start = now.start;
        self.bytes -= stack.bytes.capacity();
        stack.bytes.clear();
        stack.bytes.extend_from_slice(now.dump);
        stack.bytes.extend_from_slice(now.rest());
        stack.frames.clear();
        stack.frames.extend_from_slice(frames);
        self.bytes += stack.bytes.capacity();
        self.forget_others(index);
    }

    /// Forgets the stack of a thread.
    pub(crate) fn forget(&mut self, tid: Tid) {
        let known = self.threads.iter().position(|stack| stack.tid == tid);
        if let Some(index) = known {
            self.bytes -= self.threads.swap_remove(index).bytes.capacity();
        }
    }

    /// Drops other stacks than this one until they fit: if more threads alternate than can be
    /// stored, the one that was not seen for longest would be the next.
    fn forget_others(&mut self, mut index: usize) {
        while self.threads.len() > Self::THREADS
            || (self.bytes > self.most_bytes && self.threads.len() > 1)
        {
            let last = self.threads.len() - 1;
            let other = (index + fastrand::usize(1..=last)) % (last + 1);
            self.bytes -= self.threads.swap_remove(other).bytes.capacity();
            // The last one moves to the place of the dropped one.
            if index == last {
                index = other;
            }
        }
    }
}

impl StackSnapshot {
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
        let mut earlier = SnapshotCache::new(SnapshotCache::USUAL_BYTES);
        let long = SampledStack {
            start: 90,
            dump: &[9; 40],
            tail: None,
        };
        earlier.remember(7, &long, &[]);
        let now = SampledStack {
            start: 100,
            dump: &[1, 2, 3, 4],
            tail: tail(102, &[3, 4, 5, 6]),
        };
        assert!(now.joins());
        earlier.remember(7, &now, &[]);
        let check = |address, expected: &[u8]| {
            let mut buffer = [0; 3];
            let stack = earlier.of(7).expect("it is known");
            let count = stack.read(address, &mut buffer);
            assert_eq!(&buffer[..count], expected, "{address}");
        };
        check(100, &[1, 2, 3]);
        check(103, &[4, 5, 6]);
        check(105, &[6]);
        check(106, &[]);
        check(99, &[]);
        check(u64::MAX, &[]);
        assert!(earlier.of(8).is_none());
        earlier.forget(7);
        assert!(earlier.of(7).is_none());
        assert_eq!(earlier.bytes, 0);
    }

    #[test]
    fn stacks_end_alike_if_their_outermost_frames_do() {
        let check = |known: &[u64], frames: &[u64], expected| {
            let mut earlier = SnapshotCache::new(SnapshotCache::USUAL_BYTES);
            let now = SampledStack {
                start: 0,
                dump: &[],
                tail: None,
            };
            earlier.remember(7, &now, known);
            let stack = earlier.of(7).expect("it is known");
            assert_eq!(stack.ends_in(frames), expected, "{frames:?}");
        };
        check(&[4, 3, 2, 1], &[2, 1], true);
        check(&[4, 3, 2, 1], &[5, 4, 3, 2, 1], true);
        check(&[4, 3, 2, 1], &[5, 1], false);
        check(&[4, 3, 2, 1], &[2], false);
        check(&[], &[2, 1], true);
    }

    #[test]
    fn threads_are_remembered_within_bounds() {
        let check = |dump: &[u8], most: usize| {
            let mut earlier = SnapshotCache::new(SnapshotCache::USUAL_BYTES);
            let now = SampledStack {
                start: 0,
                dump,
                tail: None,
            };
            for tid in 0..most as Tid {
                earlier.remember(tid, &now, &[]);
            }
            assert!((0..most as Tid).all(|tid| earlier.of(tid).is_some()));
            for tid in 0..1000 {
                earlier.remember(tid, &now, &[]);
                assert!(earlier.of(tid).is_some());
                assert!(earlier.threads.len() <= most, "{tid}");
            }
        };
        check(&[0; 8], SnapshotCache::THREADS);
        check(&vec![0; 1 << 20], 16);
    }

    #[test]
    fn stacks_that_grow_stay_within_bounds() {
        let mut earlier = SnapshotCache::new(SnapshotCache::USUAL_BYTES);
        for dump in [&[0; 8][..], &[0; 1 << 20]] {
            for tid in 0..SnapshotCache::THREADS as Tid {
                let now = SampledStack {
                    start: 0,
                    dump,
                    tail: None,
                };
                earlier.remember(tid, &now, &[]);
                assert!(earlier.of(tid).is_some());
            }
        }
        let bytes: usize = earlier.threads.iter().map(|it| it.bytes.capacity()).sum();
        assert_eq!(bytes, earlier.bytes);
        assert!(bytes <= SnapshotCache::USUAL_BYTES, "{bytes}");
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
