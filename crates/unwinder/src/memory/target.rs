//! What is unwound, and what comes of it.

use std::ops::Range;

use prof_model::{Modules, Pid, Process, StackEnd, UserRegisters};

/// The process that a sample is of, at the time of the sample.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The process id, handed to [`ModuleFiles`](crate::ModuleFiles) when a file is first needed.
    pub pid: Pid,
    /// Its mappings.
    pub process: &'a Process,
    /// The table that the ids in the mappings are of. One [`Unwinder`](crate::Unwinder) serves
    /// one table: it keeps what it read of each module by [`ModuleId`](prof_model::ModuleId).
    pub modules: &'a Modules,
}

/// Where a thread was in user code when a sample was taken.
#[derive(Clone, Copy, Debug)]
pub struct UserState<'a> {
    /// Its registers.
    pub registers: &'a UserRegisters,
    /// Its stack.
    pub dump: StackDump<'a>,
}

/// The part of the user stack that was copied when the sample was taken.
#[derive(Clone, Copy, Debug)]
pub struct StackDump<'a> {
    /// The address of the first byte: the stack pointer at that time, or where the kernel took it
    /// to be.
    pub start: u64,
    /// The bytes that were really copied (PERF_SAMPLE_STACK_USER's `dyn_size`).
    pub bytes: &'a [u8],
    /// Whether the copy was filled to its limit, so that there may well be more. If not, the copy
    /// ended where the next page could not be read without a page fault: mostly the end of the
    /// stack.
    pub full: bool,
}

impl StackDump<'_> {
    /// The word at `address`, if it was copied.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        word(self.bytes, address.wrapping_sub(self.start))
    }

    /// What it means that nothing is known of the stack at `address`.
    pub(crate) fn missing(&self, address: u64) -> StackEnd {
        /// No copy misses more of its stack.
        const PLAUSIBLE: u64 = 64 << 20;
        let beyond = address.wrapping_sub(self.start);
        match self.full && beyond < PLAUSIBLE {
            true => StackEnd::TruncatedDump,
            false => StackEnd::UnreadableMemory,
        }
    }
}

/// The word at an offset into these bytes.
#[inline]
pub(super) fn word(bytes: &[u8], offset: u64) -> Option<u64> {
    let offset = usize::try_from(offset).ok()?;
    let bytes = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Memory of the live target, for stack beyond the dump.
///
/// The unwinder asks for few large blocks, and compares bytes it has both from the dump and from
/// here, so an implementation must read anew on each call and must not cache.
pub trait Memory {
    /// Copies memory from `address` up into `buffer` and returns how many bytes, from the first
    /// on, could be read: fewer than asked, or 0, where memory is not mapped or the target gone.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;

    /// Like [`read`](Self::read), but what the memory held at an earlier sample of the same thread,
    /// as far as that is still known. It is asked for where the live memory has changed since the
    /// sample, and believed if a longer stretch of the dump's end is the same in it.
    fn read_snapshot(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let _ = (address, buffer);
        0
    }

    /// Like [`read`](Self::read), for what does not change: code, and pointers to functions.
    fn read_lasting(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.read(address, buffer)
    }

    /// The chain that the kernel found by following frame pointers when it took the sample: the
    /// instruction pointer, then return addresses. Asked for where nothing else leads on.
    fn kernel_callchain(&self, index: usize) -> Option<u64> {
        let _ = index;
        None
    }

    /// What the runtime that made the code at `address` says of it.
    fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        let _ = address;
        None
    }

    /// Where the bytecodes of a method are that a runtime interprets, by what its frame has in the
    /// place of the method's address; empty for native methods. `None`: there is no method.
    fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        let _ = method;
        None
    }

    /// The mapping of the live target that holds `address` (a line of /proc/PID/maps), if that can
    /// be told: a stack is not followed past the end of its mapping. Called at most a few times
    /// per stack, only for stacks that outgrow their dump.
    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        let _ = address;
        None
    }
}

/// Code without unwind tables that a runtime has made, by what that itself says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitCode {
    /// Where its instructions are.
    pub range: Range<u64>,
    /// What is known of its frames.
    pub frames: JitFrames,
}

/// What is known of the frames of code that a runtime has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitFrames {
    /// All have one size.
    Fixed {
        /// In bytes, with the return address, which is the outermost word. The caller's frame
        /// pointer is below it.
        size: u32,
        /// From which address on frames are complete, if that is known.
        complete: Option<u64>,
    },
    /// Those of HotSpot's interpreter.
    HotSpotInterpreter,
    /// Nothing: stubs, which have frames or none.
    Unknown,
    /// The code is no longer there.
    None,
}

/// No live target: what the dump does not hold is unavailable.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn read(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// How a walk went; the frames themselves are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// Why it ended. Any but [`StackEnd::Root`] is about the last frame of the buffer: that frame's
    /// caller was not found. The stack is whole, with its middle left out, if this is
    /// [`StackEnd::Root`] and [`elided`](Self::elided) is not 0.
    pub end: StackEnd,
    /// How many of the frames were found through [`Memory`] instead of the dump; stops counting
    /// at `u16::MAX`.
    pub remote_read: u16,
    /// How many frames were left out of the middle because there is a limit to a sample's size.
    pub elided: u32,
    /// The index in the buffer (counted from this stack's first frame) of the first frame after
    /// the cut; 0 if nothing was left out.
    pub elided_at: u32,
}

impl Unwound {
    /// There is nothing to walk.
    pub fn at_once(end: StackEnd) -> Self {
        Self {
            end,
            remote_read: 0,
            elided: 0,
            elided_at: 0,
        }
    }
}
