//! What the reader hands to the session beside the bytes of records.

use prof_model::{NoPython, Pid, Tid, UserRegisters};
use prof_perfdata::{Sample, UserStack};
use prof_runtimes::python::{PythonFrame, PythonStack};

/// What an entry of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A record from a ring.
    Record,
    /// The sample of a blocked thread, which was seen in the wait that began then.
    BlockedSample {
        /// In nanoseconds.
        since: u64,
    },
    /// No record.
    Message(Message),
}

/// Something that the reader itself knows, at its place in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// In nanoseconds.
    pub(crate) time: u64,
    pub(crate) what: Known,
}

/// What a [`Message`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// From here on, samples are taken.
    Enabled,
    /// From here on, none are.
    Disabled,
    /// This thread is blocked, and was before it was sampled.
    Blocked(Pid, Tid),
}

/// The kernel's copy of a stack that may go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackCopy {
    pub(crate) pid: Pid,
    /// The stack pointer: where the copy begins in the process.
    pub(crate) start: u64,
    /// Bytes copied.
    pub(crate) length: usize,
}

impl StackCopy {
    /// That of a sample; `None` if it has no stack, or all of it.
    pub(crate) fn full(sample: &Sample<'_>) -> Option<Self> {
        let stack = sample.user_stack.filter(UserStack::is_full)?;
        let registers = sample.user_registers()?;
        Some(Self {
            pid: sample.pid,
            start: registers.stack_pointer()?,
            length: stack.bytes.len(),
        })
    }
}

/// Which memory was read beyond the kernel's copy of a stack.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub(crate) struct StackTail {
    /// The address of the first byte. The last bytes of the copy are read again, so that it
    /// shows if the stack has changed since.
    pub(crate) start: u64,
    /// Bytes read.
    pub(crate) length: usize,
    /// The mapping that the stack is in.
    pub(crate) mapping: (u64, u64),
    /// Whether the reader took the thread's CPU when the sample came, so that the stack is as it
    /// was.
    pub(crate) is_prompt: bool,
}

/// A thread as a sample shows it.
pub(crate) struct SampledThread<'a> {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) registers: UserRegisters,
    /// Its stack, from the stack pointer on.
    pub(crate) stack: &'a [u8],
    /// Whether the stack may go on.
    pub(crate) is_full: bool,
}

impl<'a> SampledThread<'a> {
    /// `None` if the sample has no registers and stack of user code.
    pub(crate) fn of(sample: &Sample<'a>) -> Option<Self> {
        Some(Self {
            pid: sample.pid,
            tid: sample.tid,
            registers: sample.user_registers()?,
            stack: sample.user_stack.as_ref()?.bytes,
            is_full: sample.user_stack.as_ref()?.is_full(),
        })
    }
}

/// The Python functions that were read for a sample.
#[derive(Debug)]
pub(crate) struct PythonReading {
    pub(crate) stack: Result<PythonStack, NoPython>,
}

impl PythonReading {
    /// Bytes of memory that it takes.
    pub(crate) fn footprint(&self) -> usize {
        let frames = self.stack.as_ref().map_or(0, |stack| stack.frames.len());
        size_of::<Self>() + frames * size_of::<PythonFrame>()
    }
}
