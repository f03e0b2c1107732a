//! Blocks of live memory, and whether they continue the dump.
//!
//! ```text
//!   dump.start           dump end
//!   │ copied with the sample │
//!   ├────────────────────────┤
//!                  ├─────────┼──────────────────────────┤
//!                  │ overlap │  block read now          │   next block: overlaps this one's end
//! ```
//! The target ran on between the dump and the read. A block is used only if its first bytes, the
//! overlap, are the same as in the dump (or the block before): the program returns through the
//! inner frames before it changes the outer ones. If they differ, the stack of an earlier sample of
//! the thread is tried, with a longer overlap.

use std::ops::Range;

use prof_model::StackEnd;

use super::{OVERLAP, Stack};

/// How many bytes are read from the target at once.
const BLOCK: usize = 64 << 10;
/// Blocks of an earlier sample must begin with more bytes of the dump, as more time has passed.
const SNAPSHOT_OVERLAP: usize = 4096;

impl Stack<'_> {
    /// Reads the block that contains `address`, and checks it.
    pub(super) fn load(&mut self, address: u64) -> Result<(), StackEnd> {
        self.blocks_left = self
            .blocks_left
            .checked_sub(1)
            .ok_or(StackEnd::TruncatedDump)?;
        self.block.bytes.resize(BLOCK, 0);
        let dump_end = self.dump.start.wrapping_add(self.dump.bytes.len() as u64);
        let block_end = self.block.start.wrapping_add(self.block.filled as u64);
        let follows =
            |end: u64| address.wrapping_sub(end.wrapping_sub(8)) < (BLOCK - 2 * OVERLAP) as u64;
        if self.block.filled > OVERLAP && follows(block_end) {
            self.load_after_block(address)
        } else if !self.dump.bytes.is_empty() && follows(dump_end) {
            self.load_after_dump(address, dump_end)
        } else if self.load_after_large_frame(address, dump_end).is_ok() {
            Ok(())
        } else {
            self.load_elsewhere(address)
        }
    }

    /// Reads the block with the end of a frame that begins in the dump and is larger than a block:
    /// an array, say. What is between cannot be compared block by block, so the end of the dump and
    /// that of the frame must have been read at one moment.
    fn load_after_large_frame(&mut self, address: u64, dump_end: u64) -> Result<(), StackEnd> {
        let overlap = self.dump.bytes.len().min(OVERLAP);
        let overlap_start = dump_end.wrapping_sub(overlap as u64);
        let is_of_one_moment =
            (self.memory).is_of_one_moment(overlap_start..address.saturating_add(8));
        if self.distrusts_live || overlap == 0 || !is_of_one_moment {
            return Err(StackEnd::Stale);
        }
        let length = self.dump.bytes.len();
        if !self.is_unchanged(length - overlap..length) {
            return Err(StackEnd::Stale);
        }
        self.bounds = self.memory.mapping(self.dump.start);
        self.from_snapshot = false;
        self.fill(address & !15, address)?;
        self.joined_live = true;
        Ok(())
    }

    fn load_after_dump(&mut self, address: u64, dump_end: u64) -> Result<(), StackEnd> {
        if self.bounds.is_none() {
            self.bounds = self.memory.mapping(self.dump.start);
        }
        let live = match self.distrusts_live {
            true => Err(StackEnd::Stale),
            false => self.join_dump(address, dump_end, OVERLAP),
        };
        self.joined_live = live.is_ok();
        live.or_else(|end| {
            self.from_snapshot = true;
            self.join_dump(address, dump_end, SNAPSHOT_OVERLAP)
                .map_err(|_| end)
        })
    }

    /// Reads the block that begins with the last bytes of the dump.
    fn join_dump(&mut self, address: u64, dump_end: u64, overlap: usize) -> Result<(), StackEnd> {
        let overlap = self.dump.bytes.len().min(overlap);
        self.fill(dump_end.wrapping_sub(overlap as u64), address)?;
        let copied = &self.dump.bytes[self.dump.bytes.len() - overlap..];
        let now = self.block.bytes.get(..overlap.min(self.block.filled));
        if now == Some(copied) {
            Ok(())
        } else {
            Err(StackEnd::Stale)
        }
    }

    fn load_after_block(&mut self, address: u64) -> Result<(), StackEnd> {
        let mut before = [0; OVERLAP];
        let from = self.block.filled - OVERLAP;
        before.copy_from_slice(&self.block.bytes[from..self.block.filled]);
        self.fill(self.block.start.wrapping_add(from as u64), address)?;
        if self.block.bytes.get(..OVERLAP.min(self.block.filled)) == Some(&before[..]) {
            Ok(())
        } else {
            Err(StackEnd::Stale)
        }
    }

    /// Reads memory that does not continue the dump: the stack under a signal handler that runs on
    /// its own, or the end of a large frame. It checks that the place in the dump that led there
    /// has not changed.
    fn load_elsewhere(&mut self, address: u64) -> Result<(), StackEnd> {
        if self.dump.bytes.is_empty() {
            // The stack was not in memory yet: a page fault there. Nothing tells whether the
            // target's memory is still of that moment.
            self.fill(address & !15, address)?;
            return Err(StackEnd::Stale);
        }
        let at = self.outermost.wrapping_sub(self.dump.start) as usize;
        let at = at.min(self.dump.bytes.len());
        // In the same mapping, it may as well be the end of a large frame.
        let own = self.memory.mapping(self.dump.start);
        self.left_dump |= !own.is_some_and(|own| own.contains(&address));
        self.bounds = self.memory.mapping(address);
        self.from_snapshot = false;
        self.fill(address & !15, address)?;
        let place = at..self.dump.bytes.len().min(at + OVERLAP);
        if self.is_unchanged(place.clone()) {
            self.memory.leave_dump(&self.dump.bytes[place]);
            return Ok(());
        }
        // The variables of a large frame change while what it has called stays.
        let callees = at.saturating_sub(OVERLAP)..at;
        let is_end_of_frame = self.frame.is_some_and(|start| start == self.outermost);
        if is_end_of_frame && !callees.is_empty() && self.is_unchanged(callees) {
            self.memory.leave_large_frame();
            return Ok(());
        }
        Err(StackEnd::Stale)
    }

    /// Whether a part of the dump, of at most [`OVERLAP`] bytes, is the same in live memory.
    fn is_unchanged(&mut self, part: Range<usize>) -> bool {
        let start = self.dump.start.wrapping_add(part.start as u64);
        let copied = &self.dump.bytes[part];
        let mut now = [0; OVERLAP];
        let now = &mut now[..copied.len()];
        self.memory.read(start, now) == copied.len() && now == copied
    }

    /// Reads a block from `start` up, which should hold `address`.
    fn fill(&mut self, start: u64, address: u64) -> Result<(), StackEnd> {
        // Another mapping may follow the end of a stack: it is not part of the stack.
        let outside = |bounds: &Range<u64>| !bounds.contains(&address);
        if self.bounds.as_ref().is_some_and(outside) {
            return Err(StackEnd::UnreadableMemory);
        }
        let available = match &self.bounds {
            Some(bounds) => usize::try_from(bounds.end.saturating_sub(start)).unwrap_or(BLOCK),
            None => BLOCK,
        };
        let buffer = &mut self.block.bytes[..available.min(BLOCK)];
        self.block.start = start;
        let count = if self.from_snapshot {
            self.memory.read_snapshot(start, buffer)
        } else {
            self.memory.read(start, buffer)
        };
        self.block.filled = count.min(buffer.len());
        let reached = start.wrapping_add(self.block.filled as u64);
        if reached.wrapping_sub(start) < address.wrapping_sub(start).wrapping_add(8) {
            self.block.filled = 0;
            return Err(self.dump.missing(address));
        }
        Ok(())
    }
}
