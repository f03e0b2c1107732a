//! The layout of CPython's structures.

use crate::Memory;

use super::lines::LineTable;
use crate::read::word;

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PythonLayout {
    /// `_PyRuntimeState.interpreters.head`.
    pub(super) interpreters: u16,
    /// `PyInterpreterState`.
    pub(super) next_interpreter: u16,
    pub(super) threads: u16,
    /// `PyThreadState`.
    pub(super) next_thread: u16,
    pub(super) thread_id: ThreadId,
    pub(super) current: Current,
    pub(super) entry: Entry,
    pub(super) frame: FrameLayout,
    pub(super) code: CodeLayout,
    pub(super) strings: StringLayout,
}

/// How a thread state identifies its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadId {
    /// By the kernel's thread id: `PyThreadState.native_thread_id`.
    Kernel(u16),
    /// By libpthread's thread id, an address: `PyThreadState.thread_id`.
    Pthread {
        at: u16,
        /// `_PyRuntimeState.main_thread`.
        main: u16,
    },
}

/// How to find the thread's innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Current {
    /// `PyThreadState.current_frame`, up to 3.10 `frame`.
    Frame(u16),
    /// `PyThreadState.cframe`, a `_PyCFrame` on the native stack.
    CFrame {
        at: u16,
        current_frame: u16,
        previous: u16,
    },
}

/// How the outermost frame of an activation is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// By its `is_entry` flag. The anchor is the `_PyCFrame`.
    Flag,
    /// The next frame is owned by the native stack, and is the anchor.
    OnStack,
    /// Each frame is an activation of its own. The anchor is a word of the native stack that points
    /// to the frame.
    Each,
}

/// `_PyInterpreterFrame`, up to 3.10 `PyFrameObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLayout {
    /// The size of the part that is read.
    pub(super) size: usize,
    pub(super) code: u16,
    pub(super) previous: u16,
    pub(super) instruction: Instruction,
    pub(super) owner: u16,
    /// The flag of 3.11.
    pub(super) is_entry: u16,
}

/// How a frame stores its current instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// As its address.
    Address(u16),
    /// As an index from the first one on, -1 before that; an instruction is this many units long.
    Index { at: u16, unit: u8 },
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) filename: u16,
    pub(super) qualname: u16,
    pub(super) linetable: u16,
    pub(super) lines: LineTable,
    pub(super) firstlineno: u16,
    pub(super) instructions: Instructions,
}

/// Where a code object stores its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instructions {
    /// From this offset on up to its end.
    Inside(u16),
    /// In an object of type `bytes`, to which this field points.
    Bytes(u16),
}

/// Objects of types `bytes` and `str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StringLayout {
    /// `PyASCIIObject`: its state and its size; ASCII text follows.
    pub(super) state: u16,
    pub(super) ascii: u16,
    /// The size of `PyCompactUnicodeObject`; other text follows.
    pub(super) compact: u16,
}

/// `FRAME_OWNED_BY_INTERPRETER` of 3.14 (pycore_interpframe_structs.h), `FRAME_OWNED_BY_CSTACK` of
/// 3.12 and 3.13 (pycore_frame.h).
pub(super) const OWNED_BY_INTERPRETER: u8 = 3;

/// The first bytes of a code object, which are read at once.
pub(super) const CODE_SIZE: usize = 256;

impl PythonLayout {
    /// Whether the fields are within the bytes that are read at once.
    pub(super) fn is_plausible(&self) -> bool {
        let (frame, code) = (&self.frame, &self.code);
        let (Instruction::Address(instruction), Instructions::Inside(instructions)) =
            (frame.instruction, code.instructions)
        else {
            return false;
        };
        let fit =
            |offsets: &[u16], size: usize| offsets.iter().all(|&at| usize::from(at) + 8 <= size);
        fit(&[frame.code, frame.previous, instruction], frame.size)
            && usize::from(frame.owner) < frame.size
            && fit(
                &[
                    code.filename,
                    code.qualname,
                    code.linetable,
                    code.firstlineno,
                ],
                CODE_SIZE,
            )
            && usize::from(instructions) <= CODE_SIZE
    }

    /// The innermost frame of a thread, and its anchor, if there is one.
    pub(super) fn current(
        &self,
        memory: &mut impl Memory,
        thread: u64,
    ) -> Option<(u64, Option<u64>)> {
        match self.current {
            Current::Frame(at) => Some((word(memory, thread.checked_add(at.into())?)?, None)),
            Current::CFrame {
                at, current_frame, ..
            } => {
                let cframe = word(memory, thread.checked_add(at.into())?)?;
                let frame = word(memory, cframe.checked_add(current_frame.into())?)?;
                Some((frame, Some(cframe)))
            }
        }
    }

    /// The `_PyCFrame` of the previous activation.
    pub(super) fn previous_cframe(&self, memory: &mut impl Memory, cframe: u64) -> Option<u64> {
        match self.current {
            Current::CFrame { previous, .. } => word(memory, cframe.checked_add(previous.into())?),
            Current::Frame(_) => None,
        }
    }
}
