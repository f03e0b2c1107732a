//! How a stack ended.

use serde::{Deserialize, Serialize};

/// Why the walk up a stack stopped. A partial stack is a value with a reason, not an error.
///
/// The numbers are part of the file format (see docs/format.md): never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[non_exhaustive]
pub enum StackEnd {
    /// The outermost frame is the entry of the process, thread or coroutine: a whole stack.
    Root = 0,
    /// The rest of the stack lies beyond the bytes that were copied and could not be had.
    TruncatedDump = 1,
    /// There is no unwind information for the code, and frame pointers lead nowhere.
    NoUnwindInfo = 2,
    /// A stack slot that should hold the caller cannot be read.
    UnreadableMemory = 3,
    /// The return address is not in any executable mapping.
    NotCode = 4,
    /// The walk came back to where it had been.
    Loop = 5,
    /// More frames than a recording's sample can hold: the middle was left out.
    FrameLimit = 6,
    /// Older stack was read from the live target, but had changed in the meantime.
    Stale = 7,
    /// The sample has no user registers or stack to walk (a kernel thread, an exiting process).
    NoUserState = 8,
    /// Stacks were not asked for.
    NotRecorded = 9,
    /// Frame pointers were followed to the end; whether that is the entry cannot be told.
    FramePointersEnded = 10,
}

impl StackEnd {
    /// Every way to end, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Root,
        Self::TruncatedDump,
        Self::NoUnwindInfo,
        Self::UnreadableMemory,
        Self::NotCode,
        Self::Loop,
        Self::FrameLimit,
        Self::Stale,
        Self::NoUserState,
        Self::NotRecorded,
        Self::FramePointersEnded,
    ];

    /// Whether the stack reaches its outermost frame.
    pub fn is_whole(self) -> bool {
        self == Self::Root
    }

    /// Whether there was a user stack to walk at all: others don't count against the verdict.
    pub fn counts(self) -> bool {
        !matches!(self, Self::NoUserState | Self::NotRecorded)
    }

    /// The end of this number in a recording.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The number that a recording stores.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What happened, to be read after a count: "12 stacks: ...".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Root => "whole",
            Self::TruncatedDump => "deeper than the copied part of the stack",
            Self::NoUnwindInfo => "no unwind information for the code",
            Self::UnreadableMemory => "stack memory could not be read",
            Self::NotCode => "return address outside of any code",
            Self::Loop => "the walk went in a circle",
            Self::FrameLimit => "more frames than a sample can hold, the middle left out",
            Self::Stale => "older stack changed before it could be read",
            Self::NoUserState => "no user stack",
            Self::NotRecorded => "stacks not recorded",
            Self::FramePointersEnded => "frame pointers ended early",
        }
    }
}
