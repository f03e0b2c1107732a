//! Leaves a function whose code goes straight on to a jump or return, by what that code does:
//! `longjmp`, `setcontext` and libgcc's functions for exceptions restore the registers of another
//! frame, and return to it.

use std::ops::Range;

use iced_x86::{Instruction, Mnemonic, Register};

use super::decode::{Kind, Window, kind};
use super::state::{Clobbers, State, Value};
use super::{LAYOUT, RIP, RSP};
use crate::arch::Code;
use crate::registers::Registers;
use crate::rule::CompactRule;

/// The most instructions up to the end of the function.
const LONGEST: usize = 24;

/// The end of a function.
struct Exit {
    /// Once it has been left.
    state: State,
    target: Value,
    returns: bool,
}

fn find_exit(code: Code<'_>, target: u64) -> Option<Exit> {
    let (mut window, mut clobbers) = (Window::default(), Clobbers::new());
    let mut state = State::new(target);
    for _ in 0..LONGEST {
        let instruction = window.decode(code, state.at)?;
        state.at = instruction.next_ip();
        let target = match kind(&instruction) {
            Kind::Next => {
                state.run(&instruction, &mut clobbers);
                continue;
            }
            Kind::Return => state.pop(),
            Kind::IndirectJump => state.first_operand(&instruction)?,
            _ => return None,
        };
        let returns = kind(&instruction) == Kind::Return;
        return Some(Exit {
            state,
            target,
            returns,
        });
    }
    None
}

/// The rule at `target` in code of HotSpot, if it goes straight to a jump out of this function
/// before which the frame is removed: to unwind an exception, or to a safepoint when it returns.
/// Other jumps leave the frame to what they jump to.
pub(in crate::arch) fn left_by_jump(
    code: Code<'_>,
    function: &Range<u64>,
    target: u64,
) -> Option<CompactRule> {
    const LONGEST: usize = 4;
    let (mut window, mut clobbers) = (Window::default(), Clobbers::new());
    let mut state = State::new(target);
    for _ in 0..LONGEST {
        let jump = state.at;
        let instruction = window.decode(code, jump)?;
        state.at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Next => state.run(&instruction, &mut clobbers),
            Kind::Jump(to) if !function.contains(&to) => {
                return has_removed_frame(code, jump).then(|| state.rule())?;
            }
            _ => return None,
        }
    }
    None
}

/// Whether the instructions before the jump do what others do only without a frame.
fn has_removed_frame(code: Code<'_>, jump: u64) -> bool {
    /// `add rsp, N` with a short and a long number; `pop rbp` follows.
    const ADD: [&[u8]; 2] = [&[0x48, 0x83, 0xc4], &[0x48, 0x81, 0xc4]];
    const POP: u8 = 0x5d;
    /// `mov [r15 + N], r10`: the return whose safepoint it is, with a short and a long number.
    const STORE: [&[u8]; 2] = [&[0x4d, 0x89, 0x57], &[0x4d, 0x89, 0x97]];
    let mut before = [0; 8];
    let length = before.len() as u64;
    let is_read = jump
        .checked_sub(length)
        .is_some_and(|start| code(start, &mut before) == before.len());
    let ends_with = |bytes: &[u8], [short, long]: [&[u8]; 2]| {
        bytes
            .get(bytes.len() - 4..)
            .is_some_and(|end| end.starts_with(short))
            || bytes
                .get(bytes.len() - 7..)
                .is_some_and(|end| end.starts_with(long))
    };
    let pops = before.last() == Some(&POP) && ends_with(&before[..7], ADD);
    is_read && (pops || ends_with(&before, STORE))
}

/// If the code at `target` goes straight to the end of its function, whether a register says where
/// the stack will be.
pub(in crate::arch) fn exit_has_stack(code: Code<'_>, target: u64) -> Option<bool> {
    let exit = find_exit(code, target)?;
    Some(matches!(exit.state.of(RSP), Value::Register(..)))
}

/// Whether it goes straight to a return with another stack pointer than by this rule.
pub(in crate::arch) fn returns_elsewhere(code: Code<'_>, target: u64, rule: &CompactRule) -> bool {
    if rule.cfa_register != RSP || rule.cfa_through.is_some() {
        return false;
    }
    let (mut window, mut at) = (Window::default(), target);
    let mut offset = 0_i64;
    for _ in 0..LONGEST {
        let Some(instruction) = window.decode(code, at) else {
            return false;
        };
        at = instruction.next_ip();
        let Some(change) = stack_pointer_change(&instruction) else {
            return false;
        };
        offset = offset.wrapping_add(change);
        match kind(&instruction) {
            Kind::Next => {}
            Kind::Return => return offset != i64::from(rule.cfa_offset),
            _ => return false,
        }
    }
    false
}

/// What the instruction adds to the stack pointer; `None` if it sets it in another way.
fn stack_pointer_change(i: &Instruction) -> Option<i64> {
    let is_stack_pointer = |register: Register| register.full_register() == Register::RSP;
    let sets = is_stack_pointer(i.op0_register())
        || i.mnemonic() == Mnemonic::Xchg && is_stack_pointer(i.op1_register());
    match i.mnemonic() {
        Mnemonic::Leave => None,
        Mnemonic::Add if sets => i.try_immediate(1).ok().map(|it| it as i64),
        Mnemonic::Sub if sets => i.try_immediate(1).ok().map(|it| (it as i64).wrapping_neg()),
        _ if sets => None,
        _ => Some(i64::from(i.stack_pointer_increment())),
    }
}

/// The registers after that, as far as they are known, and whether the code gets there by a return.
pub(in crate::arch) fn registers_at_exit(
    code: Code<'_>,
    target: u64,
    registers: &Registers,
    read: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<(Registers, bool)> {
    let exit = find_exit(code, target)?;
    let mut found = Registers::default();
    found.set(RIP, exit.target.resolve(registers, read)?);
    found.set(RSP, exit.state.of(RSP).resolve(registers, read)?);
    for &register in LAYOUT.saved {
        if let Some(value) = exit.state.of(register).resolve(registers, read) {
            found.set(register, value);
        }
    }
    Some((found, exit.returns))
}

#[cfg(test)]
mod tests {
    use super::super::tests::code_of;
    use super::super::{RBP, RBX, RDX};
    use super::*;

    fn with_cfa(cfa_offset: i32) -> CompactRule {
        CompactRule {
            cfa_register: RSP,
            cfa_offset,
            return_address: Some(-1),
            ..CompactRule::default()
        }
    }

    /// The registers, each with its number times 256 as value.
    fn numbered() -> Registers {
        let mut registers = Registers::default();
        (0..16).for_each(|number| registers.set(number, u64::from(number) << 8));
        registers
    }

    #[test]
    fn jumps_to_where_registers_say() {
        // The end of glibc's longjmp: mov (%rdi),%rbx; mov %r8,%rsp; mov %r9,%rbp; jmp *%rdx
        let code = [
            0x48, 0x8b, 0x1f, 0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2,
        ];
        let exit = |at, read: &mut dyn FnMut(u64) -> Option<u64>| {
            let found = registers_at_exit(&mut code_of(&code), at, &numbered(), read);
            let (registers, returns) = found.expect("an exit");
            assert!(!returns);
            registers
        };
        let found = exit(0, &mut |at| (at == 0x500).then_some(7));
        assert_eq!(
            [RIP, RSP, RBP, RBX].map(|it| found.get(it)),
            [Some(u64::from(RDX) << 8), Some(0x800), Some(0x900), Some(7),]
        );
        let found = exit(6, &mut |_| None);
        assert_eq!(found.get(RSP), Some(u64::from(RSP) << 8));
        assert_eq!(exit(0, &mut |_| None).get(RBX), None);
    }

    #[test]
    fn returns_with_another_stack_pointer() {
        // The end of glibc's swapcontext: mov 168(%rdx),%rcx; push %rcx; xor %eax,%eax; ret
        let code = [0x48, 0x8b, 0x8a, 0xa8, 0, 0, 0, 0x51, 0x31, 0xc0, 0xc3];
        let elsewhere = |at| returns_elsewhere(&mut code_of(&code), at, &with_cfa(8));
        assert_eq!([0, 7, 8, 10].map(elsewhere), [true, true, false, false]);
        let mut read = |at| (at == (u64::from(RDX) << 8) + 168).then_some(7);
        let found = registers_at_exit(&mut code_of(&code), 0, &numbered(), &mut read);
        let (found, returns) = found.expect("an exit");
        assert!(returns);
        assert_eq!(found.get(RIP), Some(7));
        assert_eq!(found.get(RSP), Some(u64::from(RSP) << 8));
        let found = registers_at_exit(&mut code_of(&code), 0, &numbered(), &mut |_| None);
        assert!(found.is_none());
        // add $8,%rsp; pop %rbx; ret; then mov %rbp,%rsp; ret
        let code = [0x48, 0x83, 0xc4, 8, 0x5b, 0xc3, 0x48, 0x89, 0xec, 0xc3];
        let elsewhere = |at, cfa| returns_elsewhere(&mut code_of(&code), at, &with_cfa(cfa));
        assert_eq!([24, 8].map(|offset| elsewhere(0, offset)), [false, true]);
        assert!(!elsewhere(6, 24));
    }

    #[test]
    fn branches_and_calls_are_no_straight_way() {
        let has_stack = |code: &[u8]| exit_has_stack(&mut code_of(code), 0);
        // je 0; ret
        assert_eq!(has_stack(&[0x74, 0xfe, 0xc3]), None);
        // call 5; ret
        assert_eq!(has_stack(&[0xe8, 0, 0, 0, 0, 0xc3]), None);
        // jmp *8(%rax)
        assert_eq!(has_stack(&[0xff, 0x60, 8]), None);
        // mov (%rdx),%rsp; ret
        assert_eq!(has_stack(&[0x48, 0x8b, 0x22, 0xc3]), Some(false));
        // pop %rcx; jmp *%rcx
        assert_eq!(has_stack(&[0x59, 0xff, 0xe1]), Some(true));
    }
}
