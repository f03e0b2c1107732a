//! Samples that hit the kernel before it had saved the registers of the user's code.

use prof_model::{StackEnd, UserRegisters};

/// How far the kernel had come with saving registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one value, for one sample")]
pub enum Entry {
    /// It was done: those that came with the sample are right.
    Saved,
    /// It had just been called, and these are the user's. The stack was copied from where those
    /// that came with the sample say.
    Called(UserRegisters),
    /// It had not: those that came with the sample are of an earlier entry, and the right ones are
    /// unavailable.
    Unsaved,
}

impl Entry {
    /// The registers to begin with, given those that came with the sample.
    pub fn registers(&self, saved: Option<UserRegisters>) -> Option<UserRegisters> {
        match self {
            Self::Called(registers) => Some(*registers),
            Self::Saved | Self::Unsaved => saved,
        }
    }

    /// The end of the user's stack, given that of the walk and the number of kernel frames.
    pub fn end(&self, walked: StackEnd, kernel_frames: usize) -> StackEnd {
        match self {
            Self::Saved => walked.below_kernel_frames(kernel_frames),
            Self::Unsaved if walked.counts() => StackEnd::StaleRegisters,
            Self::Called(_) | Self::Unsaved => walked,
        }
    }
}
