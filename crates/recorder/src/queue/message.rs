//! What the reader passes to the session besides the bytes of records.

use prof_model::{MissingFrames, Pid, Tid, UserRegisters};
use prof_perfdata::{Sample, UserStack};
use prof_runtimes::{InterpretedFrame, InterpretedStack};

/// The kind of an entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A record from a ring.
    Record,
    /// The sample of a thread that was blocked since then.
    BlockedSample {
        /// In nanoseconds.
        since: u64,
    },
    /// Not a record.
    Message(Message),
}

/// A message of the reader itself, at its place in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// In nanoseconds.
    pub(crate) time: u64,
    pub(crate) what: MessageKind,
}

/// The content of a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// Sampling is enabled from here on.
    Enabled,
    /// Sampling is disabled from here on.
    Disabled,
    /// This thread is blocked, and was before sampling began.
    Blocked(Pid, Tid),
}

/// A stack dump that may be incomplete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackCopy {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    /// The stack pointer: the address of the dump.
    pub(crate) start: u64,
    /// Bytes copied.
    pub(crate) length: usize,
}

impl StackCopy {
    /// The dump of a sample; `None` if it has no stack, or a complete one.
    pub(crate) fn full(sample: &Sample<'_>) -> Option<Self> {
        let stack = sample.user_stack.filter(UserStack::is_full)?;
        let registers = sample.user_registers()?;
        Some(Self {
            pid: sample.pid,
            tid: sample.tid,
            start: registers.stack_pointer()?,
            length: stack.bytes.len(),
        })
    }
}

/// The memory that was read beyond a stack dump.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub(crate) struct StackTail {
    /// The address of the first byte. The last bytes of the dump are read again, to detect changes
    /// of the stack.
    pub(crate) start: u64,
    /// Bytes read.
    pub(crate) length: usize,
    /// The mapping that contains the stack.
    pub(crate) mapping: (u64, u64),
    /// Whether a watcher preempted the thread when the sample came, until it had read the tail, so
    /// that the stack is unchanged.
    pub(crate) is_prompt: bool,
}

/// A thread at the moment of a sample.
pub(crate) struct SampledThread<'a> {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) registers: UserRegisters,
    /// Its stack, from the stack pointer on.
    pub(crate) stack: &'a [u8],
    /// Whether the dump may be incomplete.
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

/// The interpreted functions that were read for a sample.
#[derive(Debug)]
pub(crate) struct InterpretedReading {
    pub(crate) stack: Result<InterpretedStack, MissingFrames>,
}

impl InterpretedReading {
    /// Bytes of memory that it uses.
    pub(crate) fn footprint(&self) -> usize {
        let stack = self.stack.as_ref();
        let of_stack = stack.map_or(0, |stack| {
            stack.frames.len() * size_of::<InterpretedFrame>() + stack.new_bytes
        });
        size_of::<Self>() + of_stack
    }
}
