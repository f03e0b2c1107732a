//! 64-bit ARM.

mod analysis;
mod decode;
mod state;

use prof_model::StackEnd;

use super::{Architecture, Called, Code, ReadWord, RegisterLayout};
use crate::registers::Registers;
use crate::rule::CompactRule;
pub(super) use analysis::{
    analyze, analyze_from_entry, by_frame_record, epilogue, follow_to, jumps_out,
    sets_frame_pointer,
};
use decode::is_call;

const FP: u8 = 29;
const LR: u8 = 30;
pub(super) const SP: u8 = 31;
const PC: u8 = 32;

pub(super) static LAYOUT: RegisterLayout = RegisterLayout {
    architecture: Architecture::Aarch64,
    machine: object::elf::EM_AARCH64.0,
    program_counter: PC,
    stack_pointer: SP,
    frame_pointer: FP,
    return_address: LR,
    return_slot: None,
    saved: &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP, LR],
    landing_arguments: &[0, 1, 2, 3],
    // enum perf_event_arm_regs has DWARF's order.
    from_kernel: &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, FP, LR, SP, PC,
    ],
    // User addresses have up to 48 bits (52 with large addresses, which programs must ask for);
    // pointer authentication signs in the bits above.
    address_mask: (1 << 48) - 1,
    vendor: gimli::Vendor::AArch64,
};

/// `mov x8, #139 /* rt_sigreturn */; svc #0`
const SIGNAL_RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// The caller's frame pointer and the return address.
const FRAME_RECORD: u32 = 16;

/// The rule for a frame that ends with a frame record, this many bytes above a register.
pub(super) fn frame(register: u8, size: u32) -> Option<CompactRule> {
    let mut rule = CompactRule {
        cfa_register: register,
        cfa_offset: i32::try_from(size).ok()?,
        return_address: Some(-1),
        ..CompactRule::default()
    };
    rule.save(LAYOUT.saved_slot(u16::from(FP))?, -i64::from(FRAME_RECORD))?;
    Some(rule)
}

/// Whether a function can return to the address between these bytes: after a call, to the
/// trampoline behind signal handlers, or to the end of Go's goroutines.
pub(super) fn is_return_address(before: &[u8], after: &[u8]) -> bool {
    follows_call(before) || words(after).take(2).eq(SIGNAL_RETURN) || is_goexit(before, after)
}

/// Whether these bytes end with a call.
fn follows_call(before: &[u8]) -> bool {
    last_word(before).is_some_and(is_call)
}

/// Go's `runtime.goexit`: `mov x0, x0; bl runtime.goexit1`; the return address is after the first.
fn is_goexit(before: &[u8], after: &[u8]) -> bool {
    const MOV: u32 = 0xaa00_03e0;
    last_word(before) == Some(MOV)
        && words(after)
            .next()
            .is_some_and(|word| word >> 26 == 0b10_0101)
}

/// Whether these bytes are where Go's goroutines or their scheduler start: goexit, or mcall, `ldr
/// x4, [x26]; blr x4` on the scheduler's stack, which is never returned to.
pub(super) fn starts_goroutine(before: &[u8], after: &[u8]) -> bool {
    const MCALL: [u32; 2] = [0xf940_0344, 0xd63f_0080];
    let is_jump = |word: u32| word >> 26 == 0b00_0101;
    let end = before.len().checked_sub(8).and_then(|at| before.get(at..));
    let is_mcall = end.is_some_and(|end| words(end).eq(MCALL));
    is_goexit(before, after) || is_mcall && words(after).next().is_some_and(is_jump)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let words = bytes.chunks_exact(4);
    words.filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
}

fn last_word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.last_chunk()?))
}

/// A slot of a procedure linkage table: `adrp x16, page; ldr x17, [x16, offset]; add x16, x16,
/// offset; br x17`, with `bti c` before it where programs have it.
pub(super) fn jumps_through(code: Code<'_>, address: u64) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    const BR_X17: u32 = 0xd61f_0220;
    let mut bytes = [0; 20];
    let count = code(address, &mut bytes);
    let mut words = words(bytes.get(..count)?).peekable();
    let at = match words.next_if_eq(&BTI_C) {
        Some(_) => address.wrapping_add(4),
        None => address,
    };
    let (adrp, ldr, _, br) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_slot = adrp & 0x9f00_001f == 0x9000_0010 && ldr & 0xffc0_03ff == 0xf940_0211;
    if !is_slot || br != BR_X17 {
        return None;
    }
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 0b11;
    let distance = i64::from((pages << 11) as i32 >> 11) << 12;
    let page = (at & !0xfff).wrapping_add_signed(distance);
    Some(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

/// The target of the call at the end of these bytes.
pub(super) fn called(before: &[u8], target: u64) -> Option<Called> {
    match call_target(before, target) {
        Some(function) => Some(Called::Function(function)),
        None => follows_call(before).then_some(Called::Anything),
    }
}

/// The target of the `bl` at the end of these bytes.
fn call_target(before: &[u8], target: u64) -> Option<u64> {
    let word = last_word(before)?;
    let distance = i64::from((word << 6) as i32 >> 6) * 4;
    (word >> 26 == 0b100101).then(|| target.wrapping_sub(4).wrapping_add_signed(distance))
}

/// Whether the code at this return address only ends its thread: `exit` by `mov x8, #93; svc #0`
/// (musl's clone).
pub(super) fn ends_thread(after: &[u8]) -> bool {
    const MOV_EXIT: [u8; 4] = 0xd280_0ba8_u32.to_le_bytes();
    const SVC: [u8; 4] = 0xd400_0001_u32.to_le_bytes();
    let mut words = after.chunks_exact(4);
    words.any(|word| word == MOV_EXIT) && words.next() == Some(&SVC[..])
}

/// Whether code that is returned to, but follows no call, is the end of a coroutine: glibc's
/// `__startcontext`, `mov x0, x19; cbnz x0, setcontext`.
pub(super) fn ends_coroutine(code: &[u8]) -> bool {
    const MOV: u32 = 0xaa13_03e0;
    let mut words = words(code);
    words.next() == Some(MOV)
        && words
            .next()
            .is_some_and(|word| word & 0xff00_001f == 0xb500_0000)
}

/// Whether these bytes end with `mov x8, #220 /* clone */` or `#435 /* clone3 */; svc #0`, and
/// the call returned 0.
pub(super) fn is_new_thread(before: &[u8], registers: &Registers) -> bool {
    const MOV_CLONE: [u8; 4] = 0xd280_1b88_u32.to_le_bytes();
    const MOV_CLONE3: [u8; 4] = 0xd280_3668_u32.to_le_bytes();
    const SVC: [u8; 4] = 0xd400_0001_u32.to_le_bytes();
    let Some(end) = before.len().checked_sub(8).and_then(|at| before.get(at..)) else {
        return false;
    };
    let (number, call) = end.split_at(4);
    registers.get(0) == Some(0) && call == SVC && (number == MOV_CLONE || number == MOV_CLONE3)
}

/// `struct rt_sigframe` (arch/arm64/kernel/signal.c) is at the stack pointer: `siginfo_t`, then
/// `struct ucontext`, whose `struct sigcontext` holds fault address, x0 to x30, sp and pc.
pub(super) fn signal_registers(
    stack_pointer: u64,
    read: ReadWord<'_>,
) -> Result<Registers, StackEnd> {
    const SIGCONTEXT_REGISTERS: u64 = 128 + 176 + 8;
    let mut registers = Registers::default();
    let first = stack_pointer.wrapping_add(SIGCONTEXT_REGISTERS);
    for register in 0..=PC {
        registers.set(register, read(first.wrapping_add(8 * u64::from(register)))?);
    }
    Ok(registers)
}
