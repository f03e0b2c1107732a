//! Deep stacks as they were at an earlier sample of the same thread.
//!
//! What was read beyond the copy comes a little late, and not at all when there is no time for it.
//! But the outer part of a deep stack changes rarely. If what was copied with this sample joins on
//! to what was there a sample ago, the rest of that is this sample's, too: the unwinder compares.

use prof_model::Tid;

use crate::deep::Beyond;

/// The last whole deep stacks of a few threads.
#[derive(Debug, Default)]
pub(crate) struct EarlierStacks {
    /// The one used last comes last.
    threads: Vec<EarlierStack>,
}

/// A thread's stack at an earlier time.
#[derive(Debug, Default)]
pub(crate) struct EarlierStack {
    tid: Tid,
    start: u64,
    bytes: Vec<u8>,
}

impl EarlierStacks {
    /// Threads remembered, with about a megabyte each at most.
    const THREADS: usize = 8;

    /// The stack of a thread.
    pub(crate) fn of(&self, tid: Tid) -> Option<&EarlierStack> {
        self.threads.iter().find(|stack| stack.tid == tid)
    }

    /// Remembers a stack: its copy, which starts at `start`, and what was read beyond that.
    pub(crate) fn remember(&mut self, tid: Tid, start: u64, copy: &[u8], beyond: (Beyond, &[u8])) {
        let known = self.threads.iter().position(|stack| stack.tid == tid);
        let mut stack = match known {
            Some(index) => self.threads.remove(index),
            None if self.threads.len() < Self::THREADS => EarlierStack::default(),
            None => self.threads.remove(0),
        };
        let (beyond, bytes) = beyond;
        stack.tid = tid;
        stack.start = start;
        stack.bytes.clear();
        stack.bytes.extend_from_slice(copy);
        let end = start.wrapping_add(copy.len() as u64);
        let known = end.wrapping_sub(beyond.start);
        if let Some(more) = usize::try_from(known).ok().and_then(|at| bytes.get(at..)) {
            stack.bytes.extend_from_slice(more);
        }
        self.threads.push(stack);
    }
}

impl EarlierStack {
    /// Copies what was at `address` and on, and returns how many bytes were known.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let at = address
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok());
        let Some(bytes) = at.and_then(|at| self.bytes.get(at..)) else {
            return 0;
        };
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(start: u64, bytes: &[u8]) -> (Beyond, &[u8]) {
        let beyond = Beyond {
            start,
            length: bytes.len(),
            mapping: (0, u64::MAX),
        };
        (beyond, bytes)
    }

    #[test]
    fn the_copy_and_what_lay_beyond_become_one() {
        let mut earlier = EarlierStacks::default();
        earlier.remember(7, 100, &[1, 2, 3, 4], beyond(102, &[3, 4, 5, 6]));
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
    fn the_thread_that_was_not_seen_for_longest_is_forgotten() {
        let mut earlier = EarlierStacks::default();
        for tid in (0..EarlierStacks::THREADS as Tid).chain([0, 100]) {
            earlier.remember(tid, 0, &[0; 8], beyond(0, &[0; 16]));
        }
        assert!(earlier.of(0).is_some());
        assert!(earlier.of(1).is_none());
        assert!(earlier.of(100).is_some());
    }
}
