//! Instructions: reads them from a module's code, and classifies their control flow.

use iced_x86::{Code as Encoding, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::arch::Code;

/// The longest instruction.
const LONGEST: usize = 15;

/// The instruction at the start of these bytes, which are at this address; `None` if it is invalid
/// or incomplete.
pub(super) fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
    let bytes = bytes.get(..bytes.len().min(LONGEST))?;
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The effect of an instruction on the control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Next,
    Return,
    /// To this address.
    Jump(u64),
    Branch(u64),
    Call,
    /// Control goes elsewhere or nowhere.
    Stop,
    /// Through a register or memory: a jump table, or a tail call.
    IndirectJump,
}

pub(super) fn kind(instruction: &Instruction) -> Kind {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => Kind::Jump(instruction.near_branch_target()),
        FlowControl::ConditionalBranch => Kind::Branch(instruction.near_branch_target()),
        FlowControl::IndirectBranch if instruction.is_jmp_near_indirect() => Kind::IndirectJump,
        FlowControl::Return => match instruction.code() {
            Encoding::Retnq | Encoding::Retnq_imm16 => Kind::Return,
            _ => Kind::Stop,
        },
        // iced-x86 treats system calls as another kind of call.
        FlowControl::Call | FlowControl::IndirectCall => {
            let called = instruction.is_call_near() || instruction.is_call_near_indirect();
            match instruction.mnemonic() {
                _ if called => Kind::Call,
                Mnemonic::Call => Kind::Stop,
                _ => Kind::Next,
            }
        }
        FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int => Kind::Next,
        FlowControl::Next | FlowControl::XbeginXabortXend => match instruction.mnemonic() {
            Mnemonic::Hlt => Kind::Stop,
            _ => Kind::Next,
        },
        FlowControl::IndirectBranch | FlowControl::Interrupt | FlowControl::Exception => Kind::Stop,
    }
}

/// A piece of code.
pub(super) struct Window {
    bytes: [u8; Self::SIZE],
    start: u64,
    filled: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            start: 0,
            filled: 0,
        }
    }
}

impl Window {
    const SIZE: usize = 256;

    /// The instruction at this address.
    pub(super) fn decode(&mut self, code: Code<'_>, at: u64) -> Option<Instruction> {
        let filled = &self.bytes[..self.filled];
        let skip = at.wrapping_sub(self.start);
        let known = usize::try_from(skip)
            .ok()
            .and_then(|skip| filled.get(skip..));
        if let Some(bytes) = known.filter(|bytes| bytes.len() >= LONGEST) {
            return decode(bytes, at);
        }
        self.start = at;
        self.filled = code(at, &mut self.bytes).min(Self::SIZE);
        decode(&self.bytes[..self.filled], at)
    }
}
