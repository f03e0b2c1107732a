//! A frame of a walk, and the evidence for it.

use crate::arch::RegisterLayout;
use crate::registers::Registers;

/// A frame: its registers, as far as they are known.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) registers: Registers,
    /// The program counter is where the frame was interrupted, not a return address.
    pub(crate) interrupted: bool,
    pub(crate) layout: &'static RegisterLayout,
}

/// A frame's caller, and the evidence for it.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) frame: Frame,
    pub(crate) evidence: Evidence,
}

/// How a caller was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// The frame pointer alone led to it.
    pub(crate) by_frame_pointer: bool,
    /// Words of live memory were used, which may be of another moment than the sample.
    pub(crate) from_live: bool,
}

impl Frame {
    /// The frame that a sample hit.
    pub(crate) fn sampled(registers: Registers, layout: &'static RegisterLayout) -> Self {
        Self {
            registers,
            interrupted: true,
            layout,
        }
    }

    #[inline]
    pub(crate) fn program_counter(&self) -> u64 {
        self.registers.get(self.layout.program_counter).unwrap_or(0)
    }

    /// The stack pointer, or an address above all callees and in the frame, if it is unknown.
    #[inline]
    pub(crate) fn stack_pointer(&self) -> u64 {
        self.registers.last(self.layout.stack_pointer)
    }

    /// The address by which to look up the frame's code.
    #[inline]
    pub(crate) fn lookup_address(&self) -> u64 {
        self.program_counter()
            .wrapping_sub(u64::from(!self.interrupted))
    }
}
