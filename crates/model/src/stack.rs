//! How a stack ended.

use serde::{Deserialize, Serialize};

use crate::missing::MissingMemory;

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
    /// The rest of the stack lies beyond the bytes that were copied, and could not be read.
    TruncatedDump = 1,
    /// There is no unwind information for the code, and frame pointers lead nowhere.
    NoUnwindInfo = 2,
    /// A stack slot that should hold the caller cannot be read.
    UnreadableMemory = 3,
    /// The return address is not in any executable mapping.
    NotCode = 4,
    /// The walk returned to a frame where it had been.
    Loop = 5,
    /// The walk stopped after 1,048,576 frames. (A stack that is only too deep for its record loses
    /// frames in the middle, and keeps the end of its walk.)
    FrameLimit = 6,
    /// The stack tail was read from the live target, but had changed after the sample.
    Stale = 7,
    /// The sample has no user registers or stack to walk (a kernel thread, an exiting process).
    NoUserState = 8,
    /// Stacks were not requested.
    NotRecorded = 9,
    /// The chain of frame pointers ended; whether that is the entry is unknown.
    FramePointersEnded = 10,
    /// The sample hit the kernel's entry code, before it had saved the user registers: the
    /// registers in the sample are of an earlier moment.
    StaleRegisters = 11,
    /// The thread slept too short a time for its stack to be read meanwhile.
    NotSeen = 12,
    /// Unwinding was cut off, because prof had to end at once.
    NotUnwound = 13,
    /// The code is 32-bit code on a 64-bit kernel (compat mode): only the innermost function is
    /// known.
    CompatMode = 14,
    /// The Java VM says that its code there has no frame that can be followed, or the frame does
    /// not match what it says.
    JitFrame = 15,
    /// The code's file, which has the unwind information, could not be opened, or is another one
    /// now.
    NoFile = 16,
    /// The sample's own stack led to another one (from a signal handler's, or a run-time's), which
    /// had changed after the sample.
    OtherStack = 17,
    /// The callers depend on a register that is not known: of a blocked thread, a plain user sees
    /// no other ones than the program counter and the stack pointer.
    HiddenRegisters = 18,
    /// The process has no mappings, as far as the recording says.
    NoMappings = 19,
    /// The innermost function keeps no frame pointer, so that a chain of frame pointers begins with
    /// its caller's caller.
    SkippedCaller = 20,
    /// Go called C there, on another stack: the goroutine's cannot be proven to be of the sample's
    /// moment, and the kernel's chain of frame pointers does not lead back.
    CalledFromGo = 21,
    /// Code of a Go program from whose file the unwind tables were removed, and frame pointers lead
    /// nowhere.
    GoWithoutTables = 22,
    /// The callers are those of a virtual thread of Java that has waited: the Java VM keeps them on
    /// its heap until their callees return.
    OnJavaHeap = 23,
    /// A return probe has its own address in the place of the return address.
    ReturnProbe = 24,
}

/// How the walk up a sample's user stack went. The frames themselves are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNote {
    /// Why it stopped. Any reason but [`StackEnd::Root`] is about the last frame: its caller was
    /// not found. With [`StackEnd::Root`], the stack is whole, without its middle if
    /// [`elided`](Self::elided) is not 0.
    pub end: StackEnd,
    /// How many of the outermost frames come from memory read after the sample, from the live
    /// target; stops counting at `u16::MAX`.
    pub remote_read: u16,
    /// How many frames are missing between others: left out of the middle because a sample cannot
    /// hold them, or one that a chain of frame pointers [skips](StackEnd::SkippedCaller).
    pub elided: u32,
    /// Before which user frame (the innermost is number 0) they were left out; 0 if none were.
    pub elided_at: u32,
    /// What is known of memory that was needed and could not be read. Recordings do not store it.
    pub missing: MissingMemory,
}

impl StackNote {
    /// A note on a stack of which nothing is missing between its frames.
    pub const fn new(end: StackEnd) -> Self {
        Self {
            end,
            remote_read: 0,
            elided: 0,
            elided_at: 0,
            missing: MissingMemory::NONE,
        }
    }

    /// Whether frames were left out of the middle because a sample cannot hold them.
    pub fn is_too_deep(&self) -> bool {
        self.elided > 0 && self.end != StackEnd::SkippedCaller
    }
}

impl StackEnd {
    /// Every way to end, in the order of their numbers.
    pub const ALL: [Self; 25] = [
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
        Self::StaleRegisters,
        Self::NotSeen,
        Self::NotUnwound,
        Self::CompatMode,
        Self::JitFrame,
        Self::NoFile,
        Self::OtherStack,
        Self::HiddenRegisters,
        Self::NoMappings,
        Self::SkippedCaller,
        Self::CalledFromGo,
        Self::GoWithoutTables,
        Self::OnJavaHeap,
        Self::ReturnProbe,
    ];

    /// The frames that every kernel stack has: the entry and its handler in C. Code that does
    /// anything adds a third.
    const ENTRY_FRAMES: usize = 2;

    /// Whether the stack reaches its outermost frame.
    pub fn is_whole(self) -> bool {
        self == Self::Root
    }

    /// Whether it counts in the verdict on stacks. Samples without a user stack do not, nor do
    /// waits that were not seen: those count by their time.
    pub fn counts(self) -> bool {
        !matches!(self, Self::NoUserState | Self::NotRecorded | Self::NotSeen)
    }

    /// The end of a sample's user stack, given how many kernel frames the sample has.
    ///
    /// An NMI that interrupts the first instructions of another kernel entry finds the user's
    /// registers not saved yet, and delivers those of the entry before (`perf_get_regs_user` in
    /// arch/x86/kernel/perf_regs.c). They rarely fit the stack.
    pub fn below_kernel_frames(self, kernel_frames: usize) -> Self {
        let misfit = matches!(
            self,
            Self::NoUnwindInfo
                | Self::GoWithoutTables
                | Self::UnreadableMemory
                | Self::NotCode
                | Self::Loop
        );
        match kernel_frames {
            1..=Self::ENTRY_FRAMES if misfit => Self::StaleRegisters,
            _ => self,
        }
    }

    /// The end with this number in a recording.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The number that a recording stores.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason in words, after a count: "12 stacks: ...".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Root => "whole",
            Self::TruncatedDump => "deeper than the copy of the stack",
            Self::NoUnwindInfo => "the code has no unwind information",
            Self::UnreadableMemory => "stack memory could not be read",
            Self::NotCode => "a return address is not in any code",
            Self::Loop => "the callers form a loop",
            Self::FrameLimit => "more than 1,048,576 frames",
            Self::Stale => "the outer part changed before it could be read",
            Self::NoUserState => "no user stack",
            Self::NotRecorded => "stacks were not recorded",
            Self::FramePointersEnded => "the frame pointers end early",
            Self::StaleRegisters => "sampled at the entry of the kernel, with outdated registers",
            Self::NotSeen => "the wait was over before its stack could be read",
            Self::NotUnwound => "not unwound, because prof had to end at once",
            Self::CompatMode => "32-bit code: prof unwinds 64-bit programs only",
            Self::JitFrame => "run-time code without a frame to follow, or changed since",
            Self::NoFile => "the file of the code is missing, was replaced, or may not be read",
            Self::OtherStack => {
                "the callers are on another stack (of a signal handler, say) or behind a large \
                 frame, and may have changed before they were read"
            }
            Self::HiddenRegisters => "registers of a blocked thread are hidden from plain users",
            Self::SkippedCaller => {
                "the innermost function keeps no frame pointer, so that its caller is missing"
            }
            Self::NoMappings => "the recording does not say what code the process had mapped",
            Self::CalledFromGo => "C code called from Go, without frame pointers that lead back",
            Self::GoWithoutTables => "code of a Go program without unwind tables",
            Self::OnJavaHeap => {
                "the callers of a virtual thread that has waited are on the Java VM's heap"
            }
            Self::ReturnProbe => {
                "a tool has set a return probe there, which hides the return address, and the \
                 code keeps no frame pointers"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_stable() {
        for (code, end) in StackEnd::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(end.code()), code);
            assert_eq!(StackEnd::from_code(end.code()), Some(end));
        }
        assert_eq!(StackEnd::from_code(StackEnd::ALL.len() as u8), None);
    }

    #[test]
    fn misfits_below_entry_code_are_the_kernels_doing() {
        let check = |end: StackEnd, frames, expected| {
            assert_eq!(
                end.below_kernel_frames(frames),
                expected,
                "{end:?} {frames}"
            );
        };
        check(StackEnd::NotCode, 0, StackEnd::NotCode);
        check(StackEnd::NotCode, 1, StackEnd::StaleRegisters);
        check(StackEnd::NoUnwindInfo, 2, StackEnd::StaleRegisters);
        check(StackEnd::NotCode, 3, StackEnd::NotCode);
        check(StackEnd::Root, 1, StackEnd::Root);
        check(StackEnd::TruncatedDump, 1, StackEnd::TruncatedDump);
    }
}
