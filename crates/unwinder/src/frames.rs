//! The caller's buffer of frames, without the middle of very deep stacks.

use prof_model::{StackEnd, StackNote};

/// Appends frames to a buffer. Beyond the limit, the innermost half stays and the other half keeps
/// the outermost ones as a ring, so that memory is bounded at any depth.
pub(crate) struct Frames<'a> {
    buffer: &'a mut Vec<u64>,
    base: usize,
    limit: usize,
    elided: u32,
    /// The index of the oldest frame in the ring.
    oldest: usize,
    /// How many came from live memory.
    remote_read: u16,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(buffer: &'a mut Vec<u64>, limit: usize) -> Self {
        Self {
            base: buffer.len(),
            buffer,
            limit: limit.max(2),
            elided: 0,
            oldest: 0,
            remote_read: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, address: u64) {
        if self.buffer.len() - self.base < self.limit {
            self.buffer.push(address);
        } else {
            self.push_in_ring(address);
        }
    }

    /// Counts the frame that was pushed last as one that live memory led to, if it did.
    #[inline]
    pub(crate) fn count_remote(&mut self, from_live: bool) {
        self.remote_read = self.remote_read.saturating_add(u16::from(from_live));
    }

    fn push_in_ring(&mut self, address: u64) {
        let inner = self.limit / 2;
        let Some(ring) = self.buffer.get_mut(self.base + inner..) else {
            return;
        };
        if let Some(slot) = ring.get_mut(self.oldest) {
            *slot = address;
        }
        self.oldest = (self.oldest + 1) % ring.len().max(1);
        self.elided = self.elided.saturating_add(1);
    }

    /// The frames that were pushed and are kept, the innermost first up to the limit.
    pub(crate) fn so_far(&self) -> &[u64] {
        self.buffer.get(self.base..).unwrap_or_default()
    }

    /// How many frames were pushed.
    pub(crate) fn count(&self) -> usize {
        self.buffer.len() - self.base + self.elided as usize
    }

    /// Replaces the innermost frame.
    pub(crate) fn replace_first(&mut self, address: u64) {
        if let Some(slot) = self.buffer.get_mut(self.base) {
            *slot = address;
        }
    }

    /// Replaces the frame that was pushed last.
    pub(crate) fn replace_last(&mut self, address: u64) {
        let inner = self.base + self.limit / 2;
        let last = if self.elided == 0 {
            self.buffer.len().checked_sub(1)
        } else {
            let ring = self.limit - self.limit / 2;
            Some(inner + (self.oldest + ring - 1) % ring)
        };
        if let Some(slot) = last.and_then(|last| self.buffer.get_mut(last)) {
            *slot = address;
        }
    }

    /// Puts the frames in order; returns the note on them after a walk.
    pub(crate) fn finish(self, end: StackEnd) -> StackNote {
        let mut note = StackNote {
            remote_read: self.remote_read,
            ..StackNote::new(end)
        };
        if self.elided > 0 {
            let inner = self.limit / 2;
            (note.elided, note.elided_at) = (self.elided, inner as u32);
            if let Some(ring) = self.buffer.get_mut(self.base + inner..) {
                ring.rotate_left(self.oldest);
            }
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, count: u64, expected: &[u64], cut: (u32, u32)) {
        let mut buffer = vec![99];
        let mut frames = Frames::new(&mut buffer, limit);
        for address in 0..count {
            frames.push(1000);
            frames.replace_last(address);
        }
        assert_eq!(frames.count() as u64, count);
        let note = frames.finish(StackEnd::Root);
        assert_eq!((note.elided, note.elided_at), cut);
        assert_eq!((buffer[0], &buffer[1..]), (99, expected));
    }

    #[test]
    fn the_middle_is_left_out() {
        check(5, 0, &[], (0, 0));
        check(5, 5, &[0, 1, 2, 3, 4], (0, 0));
        check(5, 6, &[0, 1, 3, 4, 5], (1, 2));
        check(4, 9, &[0, 1, 7, 8], (5, 2));
        check(5, 100, &[0, 1, 97, 98, 99], (95, 2));
    }
}
