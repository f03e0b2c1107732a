//! Stack memory: the dump, and beyond it checked reads from the live target.
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

use crate::memory::target::{JitCode, Memory, StackDump, word};

/// How many bytes are read from the target at once.
const BLOCK: usize = 64 << 10;
/// How many bytes of dump and block are compared: blocks that are read earlier must begin with this
/// many bytes of the dump, too.
pub const OVERLAP: usize = 512;
/// The same for blocks of an earlier sample, as more time has passed.
const SNAPSHOT_OVERLAP: usize = 4096;
/// How far below the stack pointer rules may read, at most: registers that were just popped.
const RED_ZONE: u64 = 512;
/// The most blocks of a stack: 32 MB, which limits the cost of a hostile one.
const BLOCKS: u32 = 512;

/// The memory of a block, reused from sample to sample.
#[derive(Debug, Default)]
pub(crate) struct Block {
    start: u64,
    filled: usize,
    bytes: Vec<u8>,
}

/// A word of the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) value: u64,
    /// It is not from the dump, and may be of another moment.
    pub(crate) is_live: bool,
}

/// The stack of one sample.
pub(crate) struct Stack<'a> {
    dump: StackDump<'a>,
    /// The stack pointer at the sample. Usually the start of the dump.
    top: u64,
    block: &'a mut Block,
    memory: &'a mut dyn Memory,
    /// The mapping that contains the live part, if known.
    bounds: Option<Range<u64>>,
    /// Whether the blocks are of an earlier sample.
    from_snapshot: bool,
    /// Whether the live target's memory is known not to continue the dump, whatever the overlap
    /// says.
    distrusts_live: bool,
    blocks_left: u32,
    /// The stack pointer of the outermost frame so far in the dump: the overlap for jumps to
    /// another stack.
    outermost: u64,
    /// The stack pointer of the frame whose other end is being read, if that is all that is read.
    frame: Option<u64>,
    /// Whether live memory was accepted as the continuation of the dump.
    joined_live: bool,
    /// Whether the walk went on in memory that does not continue the dump.
    left_dump: bool,
    /// Why live memory is not used any more.
    failed: Option<StackEnd>,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(
        dump: StackDump<'a>,
        top: u64,
        block: &'a mut Block,
        memory: &'a mut dyn Memory,
    ) -> Self {
        block.filled = 0;
        Self {
            dump,
            top,
            block,
            memory,
            bounds: None,
            from_snapshot: false,
            distrusts_live: false,
            blocks_left: BLOCKS,
            outermost: dump.start,
            frame: None,
            joined_live: false,
            left_dump: false,
            failed: None,
        }
    }

    /// Like [`new`](Self::new), but live memory does not continue the dump.
    pub(crate) fn distrusting_live(mut self) -> Self {
        self.distrusts_live = true;
        self
    }

    /// Whether the dump is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.dump.bytes.is_empty()
    }

    /// Whether live memory was accepted as the continuation of the dump.
    pub(crate) fn joined_live(&self) -> bool {
        self.joined_live
    }

    /// Whether the walk went on in memory that does not continue the dump: on another stack.
    pub(crate) fn left_dump(&self) -> bool {
        self.left_dump
    }

    /// The word at `address`.
    #[inline]
    pub(crate) fn read(&mut self, address: u64) -> Result<Word, StackEnd> {
        match self.dump.word(address) {
            Some(value) => Ok(copied(value)),
            None => self.read_live(address).map(live),
        }
    }

    /// Notes that a frame with this stack pointer was reached.
    #[inline]
    pub(crate) fn reach(&mut self, stack_pointer: u64) {
        if stack_pointer.wrapping_sub(self.dump.start) < self.dump.bytes.len() as u64 {
            self.outermost = stack_pointer;
        }
    }

    /// What is read next is the other end of the frame with this stack pointer; `None`: it may be
    /// on another stack.
    pub(crate) fn expect_end_of(&mut self, frame: Option<u64>) {
        self.frame = frame;
    }

    /// The word at `address`, if it is in memory already: in the dump or in the block that was read
    /// and checked last.
    #[inline]
    pub(crate) fn at_hand(&self, address: u64) -> Option<Word> {
        match self.dump.word(address) {
            Some(value) => Some(copied(value)),
            None if self.is_below(address) => None,
            None => self.in_block(address).map(live),
        }
    }

    /// Whether `address` is slightly below the stack, where values do not last.
    #[inline]
    fn is_below(&self, address: u64) -> bool {
        self.top.wrapping_sub(address).wrapping_sub(1) < RED_ZONE
    }

    /// The kernel's own chain; see [`Memory::kernel_callchain`].
    pub(crate) fn kernel_callchain(&self, index: usize) -> Option<u64> {
        self.memory.kernel_callchain(index)
    }

    /// See [`Memory::jit_code`].
    pub(crate) fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        self.memory.jit_code(address)
    }

    /// See [`Memory::bytecodes`].
    pub(crate) fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        self.memory.bytecodes(method)
    }

    /// See [`Memory::interpreted_method`].
    pub(crate) fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        self.memory.interpreted_method(method)
    }

    /// Why live memory is not used any more, if so.
    pub(crate) fn failure(&self) -> Option<StackEnd> {
        self.failed
    }

    /// The current value of a pointer that is not on the stack.
    pub(crate) fn read_pointer(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let count = self.read_elsewhere(address, &mut bytes);
        (count == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }

    /// Copies live memory that is not on the stack; returns how many bytes there are.
    pub(crate) fn read_elsewhere(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read_lasting(address, buffer).min(buffer.len())
    }

    /// Whether the overlap in live memory is all zeros.
    pub(crate) fn is_overlap_blank(&self) -> bool {
        let overlap = self.block.filled.min(OVERLAP);
        self.block.bytes.iter().take(overlap).all(|&byte| byte == 0)
    }

    #[cold]
    fn read_live(&mut self, address: u64) -> Result<u64, StackEnd> {
        if self.is_below(address) {
            return Err(StackEnd::UnreadableMemory);
        }
        if let Some(value) = self.in_block(address) {
            return Ok(value);
        }
        if let Some(end) = self.failed {
            return Err(end);
        }
        if let Err(end) = self.load(address) {
            self.failed = Some(end);
            self.block.filled = 0;
            return Err(end);
        }
        self.in_block(address).ok_or(self.dump.missing(address))
    }

    #[inline]
    fn in_block(&self, address: u64) -> Option<u64> {
        let bytes = self.block.bytes.get(..self.block.filled)?;
        word(bytes, address.wrapping_sub(self.block.start))
    }

    /// Reads the block that contains `address`, and checks it.
    fn load(&mut self, address: u64) -> Result<(), StackEnd> {
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

fn copied(value: u64) -> Word {
    Word {
        value,
        is_live: false,
    }
}

fn live(value: u64) -> Word {
    Word {
        value,
        is_live: true,
    }
}
