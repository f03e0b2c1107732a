//! Stack memory: the dump, and beyond it checked reads from the live target.

mod blocks;

use std::ops::Range;

use prof_model::StackEnd;

use crate::memory::target::{FrameWords, JitCode, Memory, StackDump, word};

/// How many bytes of dump and block are compared: blocks that are read earlier must begin with this
/// many bytes of the dump, too.
pub const OVERLAP: usize = 512;
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

    /// See [`Memory::has_functions`].
    pub(crate) fn has_functions(&self) -> bool {
        self.memory.has_functions()
    }

    /// See [`Memory::is_builtin`].
    pub(crate) fn is_builtin(&self, address: u64) -> bool {
        self.memory.is_builtin(address)
    }

    /// See [`Memory::function`]. `frame_pointer`: of a complete frame.
    pub(crate) fn function(
        &mut self,
        address: u64,
        in_file: bool,
        frame_pointer: Option<u64>,
    ) -> Option<u64> {
        let words = frame_pointer.and_then(|pointer| self.words_below(pointer));
        self.memory.function(address, in_file, words.as_ref())
    }

    /// The words below an address, if they are in memory already.
    fn words_below(&self, address: u64) -> Option<FrameWords> {
        let mut words = FrameWords::default();
        for (word, below) in words.iter_mut().zip((8..).step_by(8)) {
            *word = self.at_hand(address.wrapping_sub(below))?.value;
        }
        Some(words)
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
