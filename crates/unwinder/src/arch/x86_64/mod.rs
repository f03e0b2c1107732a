//! x86-64.

mod analysis;
mod decode;
mod entry;
mod exit;
mod landing;
mod state;

use iced_x86::{Instruction, Mnemonic, Register};
use prof_model::StackEnd;

use super::{Architecture, Called, Code, NONE, ReadWord, RegisterLayout};
use crate::registers::Registers;
use crate::rule::CompactRule;
pub(super) use analysis::{
    analyze, analyze_from_entry, by_frame_record, epilogue, follow_to, has_frame_pointer,
    is_go_entry, jumps_out,
};
use decode::{Kind, decode, kind};
pub(super) use entry::entry;
pub(super) use exit::{exit_has_stack, left_by_jump, registers_at_exit, returns_elsewhere};
pub(super) use landing::{landing, landing_registers};

const RAX: u8 = 0;
const RDX: u8 = 1;
const RBX: u8 = 3;
pub(super) const RBP: u8 = 6;
pub(super) const RSP: u8 = 7;
const RIP: u8 = 16;

pub(super) static LAYOUT: RegisterLayout = RegisterLayout {
    architecture: Architecture::X86_64,
    machine: object::elf::EM_X86_64.0,
    program_counter: RIP,
    stack_pointer: RSP,
    frame_pointer: RBP,
    return_address: RIP,
    return_slot: Some(-8),
    saved: &[RBX, RBP, 12, 13, 14, 15],
    landing_arguments: &[RAX, RDX],
    // enum perf_event_x86_regs: ax bx cx dx si di bp sp ip, flags and segments, r8 to r15.
    from_kernel: &[
        0, RBX, 2, 1, 4, 5, RBP, RSP, RIP, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 8, 9, 10, 11,
        12, 13, 14, 15,
    ],
    address_mask: u64::MAX,
    vendor: gimli::Vendor::Default,
};

/// `mov $15 /* rt_sigreturn */, %rax; syscall`: the return address of signal handlers.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const MOV_RBX_RSP: [u8; 3] = [0x48, 0x89, 0xdc];

/// The caller's frame pointer and the return address.
pub(super) const FRAME_RECORD: u32 = 16;

/// The rule for a frame that ends with a frame record, this many bytes above a register.
pub(super) fn frame(register: u8, size: u32) -> Option<CompactRule> {
    let mut rule = CompactRule {
        cfa_register: register,
        cfa_offset: i32::try_from(size).ok()?,
        return_address: Some(-1),
        ..CompactRule::default()
    };
    rule.save(LAYOUT.saved_slot(u16::from(RBP))?, -i64::from(FRAME_RECORD))?;
    Some(rule)
}

/// Whether a function can return to the address between these bytes of code: after a call, to the
/// trampoline behind signal handlers, or to the end of Go's goroutines.
pub(super) fn is_return_address(before: &[u8], after: &[u8]) -> bool {
    follows_call(before) || after.starts_with(&SIGNAL_RETURN) || is_goexit(before, after)
}

/// Whether these bytes end with a call instruction.
fn follows_call(before: &[u8]) -> bool {
    matches!(before, [.., 0xe8, _, _, _, _]) || follows_indirect_call(before)
}

/// Whether they end with a call through a register or memory.
fn follows_indirect_call(before: &[u8]) -> bool {
    let from_end = |count: usize| {
        before
            .len()
            .checked_sub(count)
            .and_then(|at| before.get(at..))
    };
    // call r/m64: opcode, ModRM, and the bytes that ModRM implies.
    (2..=7).any(|length| {
        let Some([0xff, modrm, rest @ ..]) = from_end(length) else {
            return false;
        };
        let is_call = modrm >> 3 & 7 == 2;
        let (mode, base) = (modrm >> 6, modrm & 7);
        let sib = mode != 3 && base == 4;
        let displacement = match mode {
            0 if base == 5 => 4,
            0 if sib && rest.first().is_some_and(|sib| sib & 7 == 5) => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        is_call && rest.len() == usize::from(sib) + displacement
    })
}

/// The target of the `call rel32` at the end of these bytes.
fn call_target(before: &[u8], target: u64) -> Option<u64> {
    let call: &[u8; 5] = before.last_chunk()?;
    let [0xe8, distance @ ..] = *call else {
        return None;
    };
    Some(relative(target, distance))
}

/// The target of the call at the end of these bytes.
pub(super) fn called(before: &[u8], target: u64) -> Option<Called> {
    let direct = call_target(before, target);
    match (direct, follows_indirect_call(before)) {
        (Some(function), false) => Some(Called::Function(function)),
        (Some(function), true) => Some(Called::PerhapsFunction(function)),
        (None, true) => Some(match *before {
            // call *disp32(%rip)
            [.., 0xff, 0x15, a, b, c, d] => Called::Pointer(relative(target, [a, b, c, d])),
            _ => Called::Anything,
        }),
        (None, false) => None,
    }
}

/// `endbr64; bnd jmp *disp32(%rip)`, where the first two may be missing.
pub(super) fn jumps_through(code: Code<'_>, address: u64) -> Option<u64> {
    let mut bytes = [0; 16];
    let count = code(address, &mut bytes);
    let bytes = bytes.get(..count)?;
    let rest = bytes.strip_prefix(&ENDBR64).unwrap_or(bytes);
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let [0xff, 0x25, a, b, c, d, behind @ ..] = rest else {
        return None;
    };
    let next = address.wrapping_add((bytes.len() - behind.len()) as u64);
    Some(relative(next, [*a, *b, *c, *d]))
}

/// The rule for the address between these bytes, if it is in one of CPython's trampolines that has
/// a frame there (Python/asm_trampoline.S): `sub $8, %rsp; call *%rcx; add $8, %rsp; ret`, or in
/// later versions `push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret`.
pub(super) fn trampoline(before: &[u8], after: &[u8]) -> Option<CompactRule> {
    const PADDED: (&[u8], &[u8]) = (
        &[0x48, 0x83, 0xec, 0x08],
        &[0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3],
    );
    const LINKED: (&[u8], &[u8]) = (&[0x55, 0x48, 0x89, 0xe5], &[0xff, 0xd1, 0x5d, 0xc3]);
    const CALL: usize = 2;
    let is = |(entry, rest): (&[u8], &[u8])| {
        let (call, end) = rest.split_at(CALL);
        let called = before.strip_suffix(call);
        before.ends_with(entry) && after.starts_with(rest)
            || called.is_some_and(|it| it.ends_with(entry)) && after.starts_with(end)
    };
    if is(LINKED) {
        return frame(RSP, FRAME_RECORD);
    }
    is(PADDED).then_some(CompactRule {
        cfa_register: RSP,
        cfa_offset: 16,
        return_address: Some(-1),
        ..CompactRule::default()
    })
}

fn relative(to: u64, distance: [u8; 4]) -> u64 {
    to.wrapping_add_signed(i64::from(i32::from_le_bytes(distance)))
}

/// `nop; call runtime.goexit1; nop`; the return address is after the first `nop`.
fn is_goexit(before: &[u8], after: &[u8]) -> bool {
    before.last() == Some(&0x90) && matches!(after, [0xe8, _, _, _, _, 0x90, ..])
}

/// Whether these bytes are around the last `nop` of goexit; Go fills the gaps between functions
/// with `int3`.
pub(super) fn ends_goroutine(before: &[u8], after: &[u8]) -> bool {
    matches!(before, [.., 0x90, 0xe8, _, _, _, _]) && after.starts_with(&[0x90, 0xcc])
}

/// Whether a function that begins with this code takes its stack from rbx, as `__start_context`.
pub(super) fn starts_stack(code: &[u8]) -> bool {
    code.strip_prefix(&ENDBR64)
        .unwrap_or(code)
        .starts_with(&MOV_RBX_RSP)
}

/// Whether code that is returned to, but follows no call, is the end of a coroutine: glibc's
/// `__start_context`, which sets the stack pointer from rbx, or code that ends the process by a
/// call that cannot return (Boost.Context: `xor %rdi, %rdi; call _exit; hlt`).
pub(super) fn ends_coroutine(code: &[u8]) -> bool {
    const STRAIGHT: usize = 4;
    if code.windows(3).take(16).any(|bytes| bytes == MOV_RBX_RSP) {
        return true;
    }
    let mut rest = straight(code)
        .take(STRAIGHT + 1)
        .skip_while(|i| kind(i) == Kind::Next);
    let (last, behind) = (rest.next(), rest.next());
    let is_dead = |i: Instruction| matches!(i.mnemonic(), Mnemonic::Hlt | Mnemonic::Ud2);
    last.is_some_and(|i| kind(&i) == Kind::Call) && behind.is_some_and(is_dead)
}

/// The instructions of these bytes, one after the other.
fn straight(code: &[u8]) -> impl Iterator<Item = Instruction> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let instruction = decode(code.get(at..)?, at as u64)?;
        at += instruction.len();
        Some(instruction)
    })
}

/// Go's `runtime.systemstack`: `mov %rbx, %rsp; mov %rdi, %rdx; mov (%rdi), %rdi; call *%rdi`;
/// and `runtime.morestack`: `mov 56(%rbx), %rsp; call runtime.newstack`.
pub(super) fn switches_stack(before: &[u8]) -> bool {
    const SYSTEMSTACK: [u8; 11] = [
        0x48, 0x89, 0xdc, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7,
    ];
    const MORESTACK: [u8; 5] = [0x48, 0x8b, 0x63, 0x38, 0xe8];
    let load_and_call = before.len().checked_sub(9).and_then(|at| before.get(at..));
    before.ends_with(&SYSTEMSTACK)
        || load_and_call.is_some_and(|bytes| bytes.starts_with(&MORESTACK))
}

/// Go's `time.now`, `runtime.nanotime1` and `runtime.walltime`: `and $-16, %rsp` on the scheduler's
/// stack, `call *%rax`, and `mov %r12, %rsp` back again.
pub(super) fn calls_vdso_from_go(before: &[u8], after: &[u8]) -> bool {
    const ALIGN: [u8; 4] = [0x48, 0x83, 0xe4, 0xf0];
    const CALL: [u8; 2] = [0xff, 0xd0];
    const BACK: [u8; 3] = [0x4c, 0x89, 0xe4];
    before.ends_with(&CALL)
        && before.windows(ALIGN.len()).any(|bytes| bytes == ALIGN)
        && after.windows(BACK.len()).any(|bytes| bytes == BACK)
}

/// Whether these bytes end with the call of C in Go's `runtime.asmcgocall`: `mov ..., (%rsp); mov
/// %rbx, %rdi; mov %rbx, %rcx; call *%rax`. What it saves is the depth of Go's stack, or the stack
/// pointer.
pub(super) fn calls_c_from_go(before: &[u8]) -> bool {
    const CALL: [u8; 8] = [0x48, 0x89, 0xdf, 0x48, 0x89, 0xd9, 0xff, 0xd0];
    before.strip_suffix(&CALL).is_some_and(|rest| {
        matches!(
            rest,
            [.., 0x48, 0x89, 0x7c | 0x54, 0x24, _] | [.., 0x48, 0x89, 0x3c | 0x14, 0x24]
        )
    })
}

/// Go's `runtime.rt0_go`: `mov %rdi, %rax; mov %rsi, %rbx; sub $N, %rsp; and $-16, %rsp`. C calls
/// it with an aligned stack, so that `and` changes nothing.
pub(super) fn room_of_go_start(code: &[u8], done: u64) -> Option<i32> {
    const TAKEN: u64 = 10;
    match *code {
        [
            0x48,
            0x89,
            0xf8,
            0x48,
            0x89,
            0xf3,
            0x48,
            0x83,
            0xec,
            room,
            0x48,
            0x83,
            0xe4,
            0xf0,
            ..,
        ] if done >= TAKEN && room < 0x80 && room % 16 == 8 => Some(i32::from(room)),
        _ => None,
    }
}

/// Whether these bytes end with the system call clone or clone3, perhaps with a test of its result,
/// and the result is 0.
pub(super) fn is_new_thread(before: &[u8], registers: &Registers) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const MOV_CLONE: [u8; 5] = [0xb8, 56, 0, 0, 0];
    const MOV_CLONE3: [u8; 5] = [0xb8, 0xb3, 1, 0, 0];
    let Some(call) = before.windows(2).rposition(|bytes| bytes == SYSCALL) else {
        return false;
    };
    let (number, tested) = before.split_at(call);
    registers.get(RAX) == Some(0)
        && tested.len() <= 10
        && number
            .windows(5)
            .any(|bytes| bytes == MOV_CLONE || bytes == MOV_CLONE3)
}

/// The kernel reports registers that it did not save on entry as -1: rbx and r12 to r15 in system
/// calls.
pub(super) fn forget_unsaved(registers: &mut Registers) {
    const UNSAVED: [u8; 5] = [RBX, 12, 13, 14, 15];
    if UNSAVED
        .iter()
        .all(|&register| registers.get(register) == Some(u64::MAX))
    {
        UNSAVED
            .iter()
            .for_each(|&register| registers.forget(register));
    }
}

/// Whether these bytes are where Go's goroutines or their scheduler start: goexit or mcall.
pub(super) fn starts_goroutine(before: &[u8], after: &[u8]) -> bool {
    /// `push %rax; mov (%rdx), %r12; call *%r12` on the scheduler's stack; never returned to.
    const MCALL: [u8; 7] = [0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4];
    is_goexit(before, after) || before.ends_with(&MCALL)
}

/// Whether the code at this return address only ends its thread: straight to `exit` by `syscall`,
/// as in the `clone` of musl and of Go, or `hlt`.
pub(super) fn ends_thread(after: &[u8]) -> bool {
    const STRAIGHT: usize = 8;
    /// The system call's number.
    const EXIT: u64 = 60;
    let mut number = None;
    for instruction in straight(after).take(STRAIGHT) {
        match instruction.mnemonic() {
            Mnemonic::Hlt => return true,
            Mnemonic::Syscall => return number == Some(EXIT),
            Mnemonic::Mov if instruction.op0_register().full_register() == Register::RAX => {
                number = instruction.try_immediate(1).ok();
            }
            _ if kind(&instruction) == Kind::Next => {}
            _ => return false,
        }
    }
    false
}

/// `struct ucontext` (asm/ucontext.h) is at the stack pointer once the handler has returned; in
/// it, after flags, link and `stack_t`, `struct sigcontext_64`.
pub(super) fn signal_registers(
    stack_pointer: u64,
    read: ReadWord<'_>,
) -> Result<Registers, StackEnd> {
    const SIGCONTEXT: u64 = 40;
    /// DWARF numbers in the order of `struct sigcontext_64`: r8 to r15, di si bp bx dx ax cx sp ip.
    const ORDER: [u8; 17] = [
        8, 9, 10, 11, 12, 13, 14, 15, 5, 4, RBP, RBX, 1, 0, 2, RSP, RIP,
    ];
    let mut registers = Registers::default();
    let first = stack_pointer.wrapping_add(SIGCONTEXT);
    for (at, &register) in (0..).zip(&ORDER) {
        registers.set(register, read(first.wrapping_add(8 * at))?);
    }
    Ok(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_show_their_targets() {
        let check = |before: &[u8], expected| assert_eq!(called(before, 0x1000), expected);
        let direct = [0x90, 0x90, 0x90, 0xe8, 0x10, 0, 0, 0];
        check(&direct, Some(Called::Function(0x1010)));
        let through_table = [0x90, 0x90, 0xff, 0x15, 0x20, 0, 0, 0];
        check(&through_table, Some(Called::Pointer(0x1020)));
        check(
            &[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0],
            Some(Called::Anything),
        );
        // call *0x10(%rbx), or a direct call whose distance ends with these bytes.
        let either = [0x90, 0x90, 0x90, 0xe8, 0, 0xff, 0x53, 0x10];
        check(&either, Some(Called::PerhapsFunction(0x1000 + 0x1053_ff00)));
        check(&[0x90; 8], None);
    }

    /// Code at address 0.
    pub(super) fn code_of(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> usize + '_ {
        |at, buffer| {
            let bytes = bytes.get(at as usize..).unwrap_or_default();
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            count
        }
    }

    #[test]
    fn procedure_linkage_tables_jump_through_pointers() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(jumps_through(&mut code_of(bytes), 0), expected);
        };
        check(&[0xff, 0x25, 0x10, 0, 0, 0, 0x90], Some(0x16));
        check(
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x10, 0, 0, 0],
            Some(0x1a),
        );
        check(
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0],
            Some(0x1b),
        );
        check(&[0xff, 0x15, 0x10, 0, 0, 0], None);
        check(&[0xff], None);
    }

    #[test]
    fn functions_are_left_by_jumps() {
        let check = |bytes: &[u8], expected: (bool, &[u64])| {
            let mut found = Vec::new();
            let all = jumps_out(&mut code_of(bytes), 0..bytes.len() as u64, &mut |to| {
                found.push(to)
            });
            assert_eq!((all, &found[..]), expected);
        };
        check(&[0x90, 0xeb, 0xfd, 0xc3], (true, &[]));
        check(&[0x75, 0x10, 0xe9, 0, 1, 0, 0], (true, &[0x12, 0x107]));
        check(&[0x74, 0x10, 0xff, 0xe0], (false, &[0x12]));
        // A part of an instruction.
        check(&[0xe9, 0], (false, &[]));
    }

    #[test]
    fn coroutines_take_their_stack_from_a_register() {
        assert!(starts_stack(&[0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24]));
        assert!(starts_stack(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xdc]));
        assert!(!starts_stack(&[0x90, 0x48, 0x89, 0xdc]));
        assert!(!starts_stack(&[]));
    }

    #[test]
    fn goroutines_start_and_end_in_goexit() {
        // int3; nop; call runtime.goexit1; nop; int3, at each place in it.
        let goexit = [0xcc, 0xcc, 0x90, 0xe8, 0x1a, 0x25, 0, 0, 0x90, 0xcc, 0xcc];
        let at = |holds: fn(&[u8], &[u8]) -> bool| -> Vec<usize> {
            let places = (0..goexit.len()).filter(|&at| holds(&goexit[..at], &goexit[at..]));
            places.collect()
        };
        assert_eq!(at(starts_goroutine), [3]);
        assert_eq!(at(ends_goroutine), [8]);
    }

    #[test]
    fn the_start_of_go_takes_room() {
        let code = [
            0x48, 0x89, 0xf8, 0x48, 0x89, 0xf3, 0x48, 0x83, 0xec, 0x28, 0x48, 0x83, 0xe4, 0xf0,
        ];
        assert_eq!(
            [0, 6, 10, 300].map(|done| room_of_go_start(&code, done)),
            [None, None, Some(0x28), Some(0x28),]
        );
        let mut unaligned = code;
        unaligned[9] = 0x20;
        assert_eq!(room_of_go_start(&unaligned, 10), None);
        assert_eq!(room_of_go_start(&code[..13], 10), None);
    }

    #[test]
    fn trampolines_have_a_frame_from_their_call_on() {
        let padded = [0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3];
        let linked = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3];
        let saved = |code: &[u8], at: usize| {
            let (before, after) = code.split_at(at);
            trampoline(before, after).map(|rule| (rule.cfa_offset, rule.saved_mask != 0))
        };
        for at in 0..8 {
            let framed = [4, 6].contains(&at);
            assert_eq!(saved(&padded, at), framed.then_some((16, false)), "{at}");
            assert_eq!(saved(&linked, at), framed.then_some((16, true)), "{at}");
        }
    }
}
