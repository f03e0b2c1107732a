//! The walk from a sample's registers to the entry of its thread.

use prof_model::{StackEnd, UserRegisters};

use crate::files::ModuleFiles;
use crate::target::{Memory, StackDump, Target, Unwound};

/// The most frames that a stack is given: with kernel frames and the rest of the record it stays
/// within the 65,535 bytes that a perf.data record can have.
pub const FRAME_LIMIT: usize = 7_900;

/// Finds the callers of samples. Keeps what it read of each module, and the rules it worked out,
/// for all processes; not tied to a thread.
pub struct Unwinder {
    #[expect(dead_code, reason = "the walk is not written yet")]
    files: Box<dyn ModuleFiles + Send>,
}

impl Unwinder {
    /// An unwinder that gets modules from `files`.
    pub fn new(files: impl ModuleFiles + Send + 'static) -> Self {
        Self {
            files: Box::new(files),
        }
    }

    /// Appends the frames of a sample's user stack to `frames`, innermost first.
    ///
    /// Frames are addresses to look up: the instruction pointer itself, then for each caller the
    /// return address minus 1 (a frame that a signal interrupted is an instruction pointer again).
    /// At most [`FRAME_LIMIT`] are appended; of a deeper stack the innermost and outermost ones.
    pub fn unwind(
        &mut self,
        target: &Target<'_>,
        registers: &UserRegisters,
        stack: &StackDump<'_>,
        memory: &mut impl Memory,
        frames: &mut Vec<u64>,
    ) -> Unwound {
        let _ = (target, registers, stack, memory, frames);
        Unwound {
            end: StackEnd::NoUnwindInfo,
            read_back: 0,
            elided: 0,
            elided_at: 0,
        }
    }
}
