//! Rules by what the code of run-time compilers does: it has no unwind tables.

use std::ops::Range;

use super::{Architecture, Code, aarch64, x86_64};
use crate::rule::CompactRule;

/// The frames of HotSpot's interpreter. Registers are DWARF's numbers.
pub(crate) struct InterpreterFrames {
    /// How far below the frame pointer the address of the bytecode that runs is saved.
    pub(crate) saved_bytecode: u64,
    /// The address of the bytecode that runs.
    pub(crate) bytecode: u8,
    /// In calls, the caller's stack pointer: in one of these, by version.
    pub(crate) senders: &'static [u8],
    /// The return address, at some time while a method is entered.
    pub(crate) return_address: u8,
}

impl Architecture {
    pub(crate) fn interpreter_frames(self) -> InterpreterFrames {
        match self {
            // r13 and rax.
            Self::X86_64 => InterpreterFrames {
                saved_bytecode: 64,
                bytecode: 13,
                senders: &[13],
                return_address: 0,
            },
            // A word of padding is above the bytecode. From JDK 21 on, x19 has the caller's stack
            // pointer.
            Self::Aarch64 => InterpreterFrames {
                saved_bytecode: 72,
                bytecode: 22,
                senders: &[13, 19],
                return_address: 30,
            },
        }
    }

    /// The rule for code all of whose frames have this size, with the return address and below it
    /// the caller's frame pointer as their outermost words.
    pub(crate) fn fixed_frame(self, size: u32) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::frame(x86_64::RSP, size),
            Self::Aarch64 => aarch64::frame(aarch64::SP, size),
        }
    }

    /// The rule at `at` in code that keeps frame pointers and starts at `start`, if that is known.
    /// `interrupted`: otherwise, the code is in the call before `at`.
    pub(crate) fn by_frame_record(
        self,
        code: Code<'_>,
        (start, at): (Option<u64>, u64),
        interrupted: bool,
    ) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::by_frame_record(code, start, at, interrupted),
            Self::Aarch64 => aarch64::by_frame_record(code, start, at, interrupted),
        }
    }

    /// The rule at `target` if the code leads straight from there to its function's return.
    pub(crate) fn epilogue(self, code: Code<'_>, target: u64) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::epilogue(code, target),
            Self::Aarch64 => aarch64::epilogue(code, target),
        }
    }

    /// The rule at `target` in code of HotSpot that leaves this function by a jump, if it removes
    /// its frame before.
    pub(crate) fn left_by_jump(
        self,
        code: Code<'_>,
        function: &Range<u64>,
        target: u64,
    ) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::left_by_jump(code, function, target),
            Self::Aarch64 => None,
        }
    }
}
