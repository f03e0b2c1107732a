//! The interface for unwinding stack dumps.

mod framehop;

use prof_model::{MissingMemory, StackNote};

use crate::memory::target::{Memory, Target, UserState};
use crate::unwinder::Unwinder;

pub use framehop::Framehop;

/// Finds the callers of samples with stack dumps.
///
/// [`Unwinder`] is ours: it tracks all registers, evaluates every CFI expression, analyzes code
/// without CFI, and gives the reason why a stack ends. [`Framehop`] is the unwinder that samply and
/// others use: a second opinion.
pub trait FrameEngine {
    /// Appends the frames of a sample's user stack to `frames`, innermost first, from the dump
    /// alone. Frames are addresses to look up, like those of [`Unwinder::unwind`].
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> StackNote;
}

/// No memory but the dump, which begins at `start`.
struct DumpOnly {
    start: u64,
    missing: MissingMemory,
}

impl Memory for DumpOnly {
    fn read(&mut self, address: u64, _: &mut [u8]) -> usize {
        self.missing.needs(address, self.start);
        0
    }

    fn read_lasting(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl FrameEngine for Unwinder {
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        let mut memory = DumpOnly {
            start: user.dump.start,
            missing: MissingMemory::NONE,
        };
        let note = self.unwind(target, user, &mut memory, frames);
        StackNote {
            missing: memory.missing,
            ..note
        }
    }
}
