//! Where an exception lands, by the code of libgcc (unwind.inc, unwind-dw2.c).
//!
//! `_Unwind_RaiseException`, `_Unwind_Resume` and others end with:
//!
//! ```text
//!   call uw_install_context_1       overwrites the saved registers, one by one
//! ┌ mov  cfa+8(%rbp), %rsi          the handler's program counter and stack pointer,
//! │ mov  cfa(%rbp), %rdi              of its struct _Unwind_Context
//! │ call _Unwind_DebugHook
//! │ ...                             no way out of this part but the last jump
//! │ mov  (%rbp), %rbp
//! └ mov  %rcx, %rsp
//!   pop  %rcx
//!   jmp  *%rcx
//! ```
//!
//! From that call on, this context says where the code goes. CFI knows only the registers that are
//! being overwritten.

use std::ops::Range;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use prof_model::StackEnd;

use super::decode::{Kind, Window, kind};
use super::{LAYOUT, RIP, RSP};
use crate::arch::{Code, ReadWord};
use crate::registers::Registers;

/// Longer functions are none of libgcc's.
const LONGEST: u64 = 4 << 10;

/// `struct _Unwind_Context`: pointers to 18 saved registers, then these.
const CFA: i32 = 0x90;
const PROGRAM_COUNTER: u64 = 0x98;
const FLAGS: u64 = 0xc0;
const VERSION: u64 = 0xc8;
const ARGUMENTS_SIZE: u64 = 0xd0;
/// A byte for each register: whether the pointer is the value itself.
const BY_VALUE: u64 = 0xd8;

/// The part of a function that ends where the exception lands.
#[derive(Default)]
struct Part {
    start: u64,
    /// The first of two instructions that load from the frame: (register, offset).
    first_load: Option<(Register, i64)>,
    /// Where the handler's stack pointer is, from the frame pointer.
    cfa: Option<i64>,
    calls: usize,
    targets: Option<(u64, u64)>,
}

/// The handler's context, from the frame pointer, if the exception lands in the code at `target`.
pub(in crate::arch) fn landing(code: Code<'_>, function: Range<u64>, target: u64) -> Option<i32> {
    if function.end.checked_sub(function.start)? > LONGEST {
        return None;
    }
    let mut window = Window::default();
    let (mut at, mut part) = (function.start, Part::default());
    while at < function.end {
        let instruction = window.decode(code, at)?;
        at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Call if part.cfa.is_some() && part.calls == 0 => part.calls = 1,
            Kind::Call => part = Part::after_call(at),
            Kind::Jump(to) | Kind::Branch(to) => part.jump(to),
            Kind::Next if restores_frame_pointer(&instruction) => {
                let cfa = part.cfa.filter(|_| part.stays_within(at));
                if let (Some(cfa), true) = (cfa, (part.start..at).contains(&target)) {
                    return i32::try_from(cfa).ok()?.checked_sub(CFA);
                }
            }
            Kind::Next => part.load(&instruction),
            _ => part = Part::default(),
        }
    }
    None
}

impl Part {
    fn after_call(start: u64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Notes a load, of which the two behind the call are of the context.
    fn load(&mut self, instruction: &Instruction) {
        if self.start == 0 || self.cfa.is_some() {
            return;
        }
        let Some((register, offset)) = frame_load(instruction) else {
            *self = Self::default();
            return;
        };
        let Some((other, before)) = self.first_load.replace((register, offset)) else {
            return;
        };
        let (to, cfa, next) = match before > offset {
            true => (register, offset, before),
            false => (other, before, offset),
        };
        match to == Register::RDI && cfa.checked_add(8) == Some(next) {
            true => self.cfa = Some(cfa),
            false => *self = Self::default(),
        }
    }

    fn jump(&mut self, to: u64) {
        let (first, last) = self.targets.unwrap_or((to, to));
        self.targets = Some((first.min(to), last.max(to)));
    }

    /// Whether no jump leads out of it.
    fn stays_within(&self, end: u64) -> bool {
        let all = self.start..end;
        self.calls == 1
            && (self.targets)
                .is_none_or(|(first, last)| all.contains(&first) && all.contains(&last))
    }
}

/// The register and offset of a load from the frame.
fn frame_load(i: &Instruction) -> Option<(Register, i64)> {
    let loads = i.mnemonic() == Mnemonic::Mov
        && i.op1_kind() == OpKind::Memory
        && i.memory_base() == Register::RBP
        && i.memory_index() == Register::None;
    let to = i.op0_register();
    (loads && to.is_gpr64()).then(|| (to, i.memory_displacement64() as i64))
}

/// `mov (%rbp), %rbp`
fn restores_frame_pointer(instruction: &Instruction) -> bool {
    frame_load(instruction) == Some((Register::RBP, 0))
}

/// The registers at the landing pad, by the handler's context.
pub(in crate::arch) fn landing_registers(
    context: u64,
    read: ReadWord<'_>,
) -> Result<Registers, StackEnd> {
    /// The context has version, size of arguments and values.
    const EXTENDED: u64 = 1 << 62;
    /// The frame was interrupted by a signal.
    const SIGNAL: u64 = 1 << 63;
    let mut field = |offset| read(context.wrapping_add(offset));
    if field(FLAGS)? & !SIGNAL != EXTENDED || field(VERSION)? != 0 {
        return Err(StackEnd::NotCode);
    }
    let mut registers = Registers::default();
    registers.set(RIP, field(PROGRAM_COUNTER)?);
    let cfa = field(CFA as u64)?;
    registers.set(RSP, cfa.wrapping_add(field(ARGUMENTS_SIZE)?));
    for &register in LAYOUT.saved {
        let number = u64::from(register);
        let place = read(context.wrapping_add(8 * number))?;
        let flags = read(context.wrapping_add(BY_VALUE + (number & !7)))?;
        let value = match flags.to_le_bytes()[usize::from(register % 8)] {
            0 if place == 0 => continue,
            0 => read(place)?,
            _ => place,
        };
        registers.set(register, value);
    }
    Ok(registers)
}

#[cfg(test)]
mod tests {
    use super::super::tests::code_of;
    use super::super::{RBP, RBX};
    use super::*;

    /// The end of `_Unwind_RaiseException` of GCC 12, from its call of `uw_install_context_1` on,
    /// after a return.
    const CODE: &[u8] = &[
        0xc3, 0xe8, 0x6b, 0xd7, 0xff, 0xff, 0x48, 0x8b, 0xb5, 0xe8, 0xfd, 0xff, 0xff, 0x48, 0x8b,
        0xbd, 0xe0, 0xfd, 0xff, 0xff, 0x48, 0x89, 0xc2, 0x31, 0xc0, 0xe8, 0xb3, 0xfc, 0xff, 0xff,
        0xf3, 0x48, 0x0f, 0x1e, 0xc8, 0x48, 0x85, 0xc0, 0x74, 0x26, 0x48, 0x8b, 0x85, 0x40, 0xfe,
        0xff, 0xff, 0xb9, 0xff, 0x00, 0x00, 0x00, 0xeb, 0x0b, 0xf3, 0x48, 0x0f, 0xae, 0xe9, 0x48,
        0x2d, 0xff, 0x00, 0x00, 0x00, 0x48, 0x3d, 0xff, 0x00, 0x00, 0x00, 0x77, 0xed, 0xf3, 0x48,
        0x0f, 0xae, 0xe8, 0x48, 0x89, 0xd1, 0x48, 0x89, 0x74, 0x15, 0x08, 0x48, 0x8b, 0x45, 0xc8,
        0x48, 0x8d, 0x4c, 0x0d, 0x08, 0x48, 0x8b, 0x55, 0xd0, 0x48, 0x8b, 0x5d, 0xd8, 0x4c, 0x8b,
        0x65, 0xe0, 0x4c, 0x8b, 0x6d, 0xe8, 0x4c, 0x8b, 0x75, 0xf0, 0x4c, 0x8b, 0x7d, 0xf8, 0x48,
        0x8b, 0x6d, 0x00, 0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1,
    ];
    /// Where the call returns to, and where the frame pointer is the handler's.
    const INSTALLED: u64 = 6;
    const RESTORED: u64 = CODE.len() as u64 - 6;

    fn landing_in(bytes: &[u8], target: u64) -> Option<i32> {
        landing(&mut code_of(bytes), 0..bytes.len() as u64, target)
    }

    #[test]
    fn the_context_is_that_of_the_calls_around() {
        let context = Some(-0x220 - CFA);
        for target in [INSTALLED, INSTALLED + 7, 0x1e, RESTORED - 4] {
            assert_eq!(landing_in(CODE, target), context, "{target:#x}");
        }
        for target in [0, 1, RESTORED, RESTORED + 3] {
            assert_eq!(landing_in(CODE, target), None, "{target:#x}");
        }
    }

    #[test]
    fn other_code_is_no_landing() {
        let changed = |at: usize, byte: u8| {
            let mut code = CODE.to_vec();
            code[at] = byte;
            landing_in(&code, INSTALLED)
        };
        // A branch out of it, loads from elsewhere, a return in it.
        assert_eq!(changed(0x27, 0x7f), None);
        assert_eq!(changed(0x10, 0xd0), None);
        assert_eq!(changed(0x1e, 0xc3), None);
    }

    #[test]
    fn the_context_points_to_the_saved_registers() {
        let words = |at: u64| match at {
            0x1018 => Ok(0x2000),
            0x2000 => Ok(3),
            // By value, as the byte below says.
            0x1030 => Ok(6),
            0x10d8 => Ok(1 << 48),
            0x1090 => Ok(0x3000),
            0x1098 => Ok(0x4000),
            0x10c0 => Ok(1 << 62),
            0x10d0 => Ok(16),
            _ => Ok(0),
        };
        let found = landing_registers(0x1000, &mut { words }).expect("a context");
        let values = [RBX, RBP, 12, RSP, RIP].map(|it| found.get(it));
        assert_eq!(values, [Some(3), Some(6), None, Some(0x3010), Some(0x4000)]);
        let other = landing_registers(0x1000, &mut |_| Ok(0));
        assert_eq!(other.err(), Some(StackEnd::NotCode));
    }
}
