//! Samples that hit the kernel before it had saved the registers of the user's code.

use prof_model::{StackEnd, StackNote, UserRegisters};

/// How far the kernel was with saving registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one value, for one sample")]
pub enum Entry {
    /// The sample hit the user's code, not the kernel.
    NotEntered,
    /// They were saved: those of the sample are right.
    Saved,
    /// The kernel had just been called, and these are the user's. The stack was dumped from the
    /// address in the sample's registers.
    Called(UserRegisters),
    /// They were not saved: those of the sample are of an earlier entry, and the right ones are
    /// unavailable.
    Unsaved,
}

impl Entry {
    /// The registers to start with, given those of the sample.
    pub fn registers(&self, saved: Option<UserRegisters>) -> Option<UserRegisters> {
        match self {
            Self::Called(registers) => Some(*registers),
            Self::NotEntered | Self::Saved | Self::Unsaved => saved,
        }
    }

    /// The note on the user's stack, given that of the walk, its `frames` and the number of kernel
    /// frames. Without mappings, the sample's address (`ip`) becomes the only frame.
    pub fn finish(
        &self,
        walked: StackNote,
        kernel_frames: usize,
        ip: u64,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        let end = match self {
            // There was a program that ran: the page of its stack was not in memory yet, or ...
            Self::NotEntered
                if walked.end == StackEnd::NoUserState && frames.last() == Some(&ip) =>
            {
                StackEnd::UnreadableMemory
            }
            // ... its code is unknown.
            Self::NotEntered if walked.end == StackEnd::NoUserState => {
                frames.push(ip);
                StackEnd::NoMappings
            }
            Self::Saved => walked.end.below_kernel_frames(kernel_frames),
            Self::Unsaved if walked.end.counts() => StackEnd::StaleRegisters,
            Self::NotEntered | Self::Called(_) | Self::Unsaved => walked.end,
        };
        StackNote { end, ..walked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_user_code_always_have_a_user_stack() {
        let check = |walked: &[u64], expected| {
            let mut frames = walked.to_vec();
            let end = StackNote::new(StackEnd::NoUserState);
            let note = Entry::NotEntered.finish(end, 0, 0x1000, &mut frames);
            assert_eq!((note.end, &frames[..]), (expected, &[0x1000][..]));
        };
        check(&[], StackEnd::NoMappings);
        check(&[0x1000], StackEnd::UnreadableMemory);
    }
}
