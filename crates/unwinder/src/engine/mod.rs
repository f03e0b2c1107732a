//! The boundary between those who have copies of stacks and those who unwind them.

mod framehop;

use crate::memory::target::{NoMemory, Target, Unwound, UserState};
use crate::unwinder::Unwinder;

pub use framehop::Framehop;

/// Finds the callers of samples whose stack was copied.
///
/// [`Unwinder`] is ours: it follows all registers, evaluates every CFI expression, reads code that
/// has no CFI, and names the reason why a stack ends. [`Framehop`] is the unwinder that samply and
/// others use: a second opinion.
pub trait FrameEngine {
    /// Appends the frames of a sample's user stack to `frames`, innermost first, from the copied
    /// bytes alone. Frames are addresses to look up, as those of [`Unwinder::unwind`].
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> Unwound;
}

impl FrameEngine for Unwinder {
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> Unwound {
        self.unwind(target, user, &mut NoMemory, frames)
    }
}
