//! Deep stacks as they were at an earlier sample of the same thread.
//!
//! The outer part of a deep stack changes rarely. That serves twice. What was read beyond the copy
//! comes a little late, and not at all when there is no time for it: if what was copied with this
//! sample joins on to what was there a sample ago, the rest of that is this sample's, too. And
//! where the whole outer part is still the same, it need not be walked again. The unwinder decides
//! on both; here are the bytes.

use std::ops::Range;

use prof_model::Tid;
use prof_unwinder::CachedUnwind;

use crate::reader::stack_tail::StackTail;

/// The last whole deep stacks of a few threads.
#[derive(Debug, Default)]
pub(crate) struct SnapshotCache {
    threads: Vec<StackSnapshot>,
    /// Of memory that they take.
    bytes: usize,
}

/// A thread's stack at an earlier time.
#[derive(Debug, Default)]
pub(crate) struct StackSnapshot {
    tid: Tid,
    /// Of the process's mappings.
    version: u64,
    /// The address of the first byte.
    start: u64,
    bytes: Vec<u8>,
    /// How many of the first bytes are not in use: stacks grow to lower addresses.
    unused: usize,
    /// From where on they are of this reading of the live target.
    beyond: Option<(u64, u64)>,
    trail: CachedUnwind,
}

/// A stack as it was when a sample was unwound: its copy, and what was read on from there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledStack<'a> {
    pub(crate) start: u64,
    pub(crate) copy: &'a [u8],
    pub(crate) beyond: Option<(StackTail, &'a [u8])>,
}

impl SampledStack<'_> {
    fn copy_end(&self) -> u64 {
        self.start.saturating_add(self.copy.len() as u64)
    }

    /// What was read beyond the copy: the end of the copy again, and the rest.
    fn parts_beyond(&self) -> Option<(&[u8], &[u8])> {
        let (beyond, bytes) = self.beyond?;
        let again = self.copy_end().checked_sub(beyond.start)?;
        bytes.split_at_checked(usize::try_from(again).ok()?)
    }

    /// The bytes beyond the copy.
    fn rest(&self) -> &[u8] {
        self.parts_beyond().map_or(&[], |(_, rest)| rest)
    }

    /// Whether the target had not changed what was read twice.
    pub(crate) fn joins(&self) -> bool {
        let again = self.parts_beyond().map_or(&[][..], |(again, _)| again);
        self.copy.ends_with(again)
    }

    /// Whether all beyond the copy lies where nothing has changed.
    pub(crate) fn goes_on_in(&self, same: &Range<u64>) -> bool {
        same.start <= self.copy_end() && self.end() <= same.end
    }

    fn end(&self) -> u64 {
        self.copy_end().saturating_add(self.rest().len() as u64)
    }

    fn reading(&self) -> Option<u64> {
        self.beyond.map(|(beyond, _)| beyond.reading)
    }
}

impl SnapshotCache {
    /// Threads remembered at most.
    const THREADS: usize = 64;
    /// Bytes of all their stacks, which one of 5,000 frames takes 200,000 of.
    const BYTES: usize = 16 << 20;

    /// The stack of a thread.
    pub(crate) fn of(&self, tid: Tid) -> Option<&StackSnapshot> {
        self.threads.iter().find(|stack| stack.tid == tid)
    }

    /// Remembers the stack of a thread whose process has this version of mappings. In `same`, it
    /// is what is remembered already. `keep` makes the trail that of this stack.
    pub(crate) fn remember(
        &mut self,
        (tid, version): (Tid, u64),
        now: &SampledStack<'_>,
        same: Range<u64>,
        keep: impl FnOnce(&mut CachedUnwind),
    ) {
        let known = self.threads.iter().position(|stack| stack.tid == tid);
        let index = known.unwrap_or_else(|| {
            self.threads.push(StackSnapshot::default());
            self.threads.len() - 1
        });
        let Some(stack) = self.threads.get_mut(index) else {
            return;
        };
        stack.tid = tid;
        stack.version = version;
        self.bytes -= stack.bytes.len();
        stack.replace(now, same);
        self.bytes += stack.bytes.len();
        keep(&mut stack.trail);
        self.forget_others(index);
    }

    /// Forgets any stacks but this one, as long as there are too many: where more threads than there is
    /// room for take turns, the one that was not seen for longest would be the next.
    fn forget_others(&mut self, mut index: usize) {
        while self.threads.len() > Self::THREADS
            || (self.bytes > Self::BYTES && self.threads.len() > 1)
        {
            let last = self.threads.len() - 1;
            let other = (index + fastrand::usize(1..=last)) % (last + 1);
            self.bytes -= self.threads.swap_remove(other).bytes.len();
            // The last one takes the place of the one that goes.
            if index == last {
                index = other;
            }
        }
    }
}

impl StackSnapshot {
    /// Room made for a stack to grow into.
    const GROWTH: usize = 64 << 10;

    /// What the walk of it has found, unless the process has other mappings now.
    pub(crate) fn trail(&self, version: u64) -> Option<&CachedUnwind> {
        (self.version == version).then_some(&self.trail)
    }

    /// Copies what was at `address` and on, and returns how many bytes were known.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let bytes = part(self.known(), self.start, address..u64::MAX);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        length
    }

    /// Whether what is known beyond the copy was read together with what lies beyond that of the stack
    /// now.
    pub(crate) fn shares_reading(&self, now: &SampledStack<'_>) -> bool {
        let known = self.beyond.map(|(_, reading)| reading);
        known.is_some() && known == now.reading()
    }

    /// The addresses from where up to where the stack is still the same.
    pub(crate) fn unchanged(&self, now: &SampledStack<'_>) -> Range<u64> {
        if !now.joins() {
            return 0..0;
        }
        let lowest = self.start.max(now.start);
        let end = self.end().min(now.end());
        let mut same = end;
        if let Some((beyond, _)) = self.beyond.filter(|_| self.shares_reading(now)) {
            same = beyond.max(now.copy_end()).min(end);
        }
        for (start, bytes) in [(now.copy_end(), now.rest()), (now.start, now.copy)] {
            let first = start.max(lowest);
            let here = part(bytes, start, first..same);
            same -= same_at_end(part(self.known(), self.start, first..same), here) as u64;
            if same > first {
                break;
            }
        }
        same..end
    }

    fn known(&self) -> &[u8] {
        self.bytes.get(self.unused..).unwrap_or_default()
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.known().len() as u64)
    }

    /// Makes the bytes those of the stack now, which are known in `same`.
    fn replace(&mut self, now: &SampledStack<'_>, same: Range<u64>) {
        let length = now.copy.len() + now.rest().len();
        let mut end = now.end();
        if self.bytes.len() < length {
            self.bytes.clear();
            self.bytes.resize(length + Self::GROWTH, 0);
        } else if same.end == end && same.end == self.end() {
            // Both end where the buffer ends, so these bytes are in their place.
            end = same.start;
        }
        self.start = now.start;
        self.beyond = now.reading().map(|reading| (now.copy_end(), reading));
        self.unused = self.bytes.len() - length;
        for (start, bytes) in [(now.start, now.copy), (now.copy_end(), now.rest())] {
            let at = self.unused + (start - now.start) as usize;
            let new = part(bytes, start, start..end);
            if let Some(room) = self.bytes.get_mut(at..at + new.len()) {
                room.copy_from_slice(new);
            }
        }
    }
}

/// The bytes in a range of addresses, of those from `start` on, as far as they are there.
fn part(bytes: &[u8], start: u64, range: Range<u64>) -> &[u8] {
    let index = |address: u64| usize::try_from(address.checked_sub(start)?).ok();
    let end = index(range.end).unwrap_or(0).min(bytes.len());
    let first = index(range.start).unwrap_or(usize::MAX);
    bytes.get(first..end).unwrap_or_default()
}

/// How many of the last bytes are the same; a few less where they differ.
fn same_at_end(one: &[u8], other: &[u8]) -> usize {
    let mut same = 0;
    for size in [4096, 64] {
        let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
        let chunks = one.rchunks(size).zip(other.rchunks(size));
        same += chunks
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one.len())
            .sum::<usize>();
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(start: u64, bytes: &[u8]) -> Option<(StackTail, &[u8])> {
        read_tail_of(0, start, bytes)
    }

    fn read_tail_of(reading: u64, start: u64, bytes: &[u8]) -> Option<(StackTail, &[u8])> {
        let beyond = StackTail {
            start,
            length: bytes.len(),
            mapping: (0, u64::MAX),
            reading,
        };
        Some((beyond, bytes))
    }

    fn remember(earlier: &mut SnapshotCache, tid: Tid, now: &SampledStack<'_>) {
        let before = earlier.of(tid).map(|before| before.unchanged(now));
        earlier.remember((tid, 1), now, before.unwrap_or(0..0), |_| ());
    }

    #[test]
    fn the_copy_and_what_lay_beyond_become_one() {
        let mut earlier = SnapshotCache::default();
        let now = SampledStack {
            start: 100,
            copy: &[1, 2, 3, 4],
            beyond: beyond(102, &[3, 4, 5, 6]),
        };
        remember(&mut earlier, 7, &now);
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
    }

    #[test]
    fn threads_are_remembered_within_bounds() {
        let check = |copy: &[u8], most: usize| {
            let mut earlier = SnapshotCache::default();
            let now = SampledStack {
                start: 0,
                copy,
                beyond: None,
            };
            for tid in 0..most as Tid {
                remember(&mut earlier, tid, &now);
            }
            assert!((0..most as Tid).all(|tid| earlier.of(tid).is_some()));
            for tid in 0..1000 {
                remember(&mut earlier, tid, &now);
                assert!(earlier.of(tid).is_some());
                assert!(earlier.threads.len() <= most, "{tid}");
            }
        };
        check(&[0; 8], SnapshotCache::THREADS);
        // Each has room to grow.
        check(&vec![0; (1 << 20) - StackSnapshot::GROWTH], 16);
    }

    #[test]
    fn stacks_that_grow_stay_within_bounds() {
        let mut earlier = SnapshotCache::default();
        for copy in [&[0; 8][..], &[0; 1 << 20]] {
            for tid in 0..SnapshotCache::THREADS as Tid {
                let now = SampledStack {
                    start: 0,
                    copy,
                    beyond: None,
                };
                remember(&mut earlier, tid, &now);
                assert!(earlier.of(tid).is_some());
            }
        }
        let bytes: usize = earlier.threads.iter().map(|it| it.bytes.len()).sum();
        assert_eq!(bytes, earlier.bytes);
        assert!(bytes <= SnapshotCache::BYTES, "{bytes}");
    }

    #[test]
    fn what_lies_beyond_is_news_if_any_of_it_has_changed() {
        let now = SampledStack {
            start: 100,
            copy: &[0; 8],
            beyond: beyond(104, &[0; 12]),
        };
        let cases = [
            (108..116, true),
            (100..116, true),
            (109..116, false),
            (108..115, false),
            (0..0, false),
        ];
        for (same, expected) in cases {
            assert_eq!(now.goes_on_in(&same), expected, "{same:?}");
        }
    }

    #[test]
    fn trails_are_of_one_version_of_mappings() {
        let mut earlier = SnapshotCache::default();
        let now = SampledStack {
            start: 0,
            copy: &[0; 8],
            beyond: None,
        };
        remember(&mut earlier, 7, &now);
        let stack = earlier.of(7).expect("it is known");
        assert!(stack.trail(1).is_some() && stack.trail(2).is_none());
    }

    /// The stack changes here and there and begins and ends elsewhere each time; what is said to
    /// be unchanged must be, what is remembered must be what there was, and of one that only
    /// changes at its beginning nearly all must be said to be unchanged.
    #[test]
    fn what_is_the_same_is_told_and_kept() {
        const BASE: u64 = 0x1000;
        let mut random = fastrand::Rng::with_seed(1);
        let mut memory = vec![0; 300_000];
        let mut earlier = SnapshotCache::default();
        let mut before: Option<(u64, Vec<u8>)> = None;
        let mut seen = 0;
        let mut read_before: Option<(u64, Range<usize>)> = None;
        for round in 0..2_000 {
            let start = random.usize(..200_000);
            let only_front = round == seen + 1 && round % 2 == 0;
            // Some share what the one before has read.
            let shared = read_before.take().filter(|_| random.usize(..4) == 0);
            let changed = match &shared {
                Some((_, read)) => 0..read.start - 8,
                None if only_front => start..start + 100,
                None => 0..memory.len() - 100,
            };
            for _ in 0..random.usize(..4) {
                let at = changed.start + random.usize(..changed.len());
                memory[at..at + 8].fill(round as u8);
            }
            let mut copy_end = start + random.usize(..70_000);
            let (reading, end) = match &shared {
                Some((reading, read)) => {
                    copy_end = copy_end.clamp(read.start.max(start), read.end.max(start));
                    (*reading, read.end.max(copy_end))
                }
                None if random.usize(..8) > 0 => (round, memory.len()),
                None => (round, copy_end + random.usize(..memory.len() - copy_end)),
            };
            let overlap = random.usize(..512).min(copy_end - start);
            let lowest = shared.as_ref().map_or(0, |(_, read)| read.start);
            let read_from = (copy_end - overlap).max(lowest).min(copy_end);
            let mut read = memory[read_from..end].to_vec();
            let stale = copy_end > read_from && random.usize(..8) == 0;
            if stale {
                read[0] ^= 1;
            }
            let now = SampledStack {
                start: BASE + start as u64,
                copy: &memory[start..copy_end],
                beyond: (random.usize(..8) > 0)
                    .then(|| read_tail_of(reading, BASE + read_from as u64, &read))
                    .flatten(),
            };
            let all = [now.copy, now.rest()].concat();
            let same = earlier.of(1).map_or(0..0, |stack| stack.unchanged(&now));
            if let Some((first, bytes)) = &before
                && !same.is_empty()
            {
                let of = |start: u64, bytes: &[u8]| part(bytes, start, same.clone()).to_vec();
                assert!(now.joins());
                assert_eq!(of(*first, bytes), of(now.start, &all));
                assert_eq!(of(now.start, &all).len() as u64, same.end - same.start);
                let long = first.max(&now.start) + 100 + 8 + 64;
                assert!(
                    !only_front || shared.is_some() || same.start <= long || long > same.end,
                    "{same:x?}"
                );
            }
            if now.joins() {
                remember(&mut earlier, 1, &now);
                let mut buffer = vec![0; memory.len()];
                let count = earlier
                    .of(1)
                    .map(|stack| stack.read(now.start, &mut buffer));
                assert_eq!(count, Some(all.len()));
                assert!(buffer[..all.len()] == all, "{round}");
                let read_it = now.beyond.is_some() && !stale && read_from > 8;
                read_before = read_it.then_some((reading, read_from..end));
                before = Some((now.start, all));
                seen = round;
            }
        }
        assert!(before.is_some());
    }
}
