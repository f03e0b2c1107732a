//! One step of a walk: from a frame to its caller, by the rule for the frame's code.

pub(crate) mod apply;
pub(crate) mod call_edges;
pub(crate) mod check;
pub(crate) mod exit;
pub(crate) mod fast;
pub(crate) mod lookup;

use prof_model::StackEnd;

use crate::code::ProcessCode;
use crate::frame::{Caller, Evidence, Frame};
use crate::memory::stack::Stack;
use crate::registers::Registers;

/// A frame whose caller is searched, with the context of the search.
pub(crate) struct Step<'s, 'w> {
    pub(crate) frame: &'s Frame,
    /// How the frame itself was found.
    pub(crate) evidence: Evidence,
    pub(crate) code: &'s mut ProcessCode<'w>,
    pub(crate) stack: &'s mut Stack<'w>,
    /// Whether words of live memory were read in this step.
    pub(crate) from_live: bool,
    /// What represents the frame in the call chain, if its own program counter does not.
    pub(crate) recorded_as: Option<u64>,
}

impl<'s, 'w> Step<'s, 'w> {
    pub(crate) fn new(
        frame: &'s Frame,
        evidence: Evidence,
        code: &'s mut ProcessCode<'w>,
        stack: &'s mut Stack<'w>,
    ) -> Self {
        Self {
            frame,
            evidence,
            code,
            stack,
            from_live: false,
            recorded_as: None,
        }
    }

    /// The word of the stack at `address`.
    #[inline]
    pub(crate) fn read(&mut self, address: u64) -> Result<u64, StackEnd> {
        let word = self.stack.read(address)?;
        self.from_live |= word.is_live;
        Ok(word.value)
    }

    /// A caller with these registers, with the evidence of this step.
    #[inline]
    pub(crate) fn caller(&self, registers: Registers) -> Caller {
        Caller {
            frame: Frame {
                registers,
                interrupted: false,
                layout: self.frame.layout,
            },
            evidence: Evidence {
                by_frame_pointer: false,
                from_live: self.from_live,
            },
        }
    }

    /// Like [`caller`](Self::caller), but it was interrupted by a signal.
    pub(crate) fn interrupted(&self, registers: Registers) -> Caller {
        let mut caller = self.caller(registers);
        caller.frame.interrupted = true;
        caller
    }
}
