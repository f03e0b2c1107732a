//! The interface for unwinding stack dumps.

mod framehop;

use prof_model::StackNote;

use crate::memory::target::{NoMemory, Target, UserState};
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

impl FrameEngine for Unwinder {
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        self.unwind(target, user, &mut NoMemory, frames)
    }
}
