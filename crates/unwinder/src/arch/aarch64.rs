//! 64-bit ARM.

use prof_model::StackEnd;

use super::{Architecture, Called, Code, ReadWord, RegisterLayout};
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule};

const FP: u8 = 29;
const LR: u8 = 30;
const SP: u8 = 31;
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

const RET: u32 = 0xd65f_03c0;
/// retaa, retab: return with pointer authentication.
const RETAA: u32 = 0xd65f_0bff;
const RETAB: u32 = 0xd65f_0fff;
/// `mov x8, #139 /* rt_sigreturn */; svc #0`
const SIGNAL_RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// Whether a frame record must still be popped before the function returns: then x29 points to it;
/// otherwise the return address is in x30.
pub(super) fn analyze(code: Code<'_>, target: u64, entry: u64) -> Rule {
    const WORDS: usize = 512;
    let mut bytes = [0; 4 * WORDS];
    let count = code(target, &mut bytes);
    let words = |count: usize| {
        bytes[..count]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    if words(count).take(2).eq(SIGNAL_RETURN) {
        return Rule::SignalReturn;
    }
    if entry != 0 && (entry..entry.saturating_add(64)).contains(&target) {
        return Rule::ProgramEntry;
    }
    for word in words(count) {
        if loads_frame_record(word) {
            return Rule::Guess(CompactRule {
                cfa_register: FP,
                cfa_offset: 16,
                return_address: Some(-1),
                saved_mask: 1 << FP_SLOT,
                saved: {
                    let mut saved = [0; CompactRule::SAVED];
                    saved[FP_SLOT] = -2;
                    saved
                },
                cfa_through: None,
            });
        }
        if matches!(word, RET | RETAA | RETAB) {
            return Rule::Guess(CompactRule {
                cfa_register: SP,
                cfa_offset: 0,
                return_address: None,
                ..CompactRule::default()
            });
        }
    }
    Rule::Unknown
}

const FP_SLOT: usize = 10;

/// `ldp x29, x30, [sp, ...]` in its three addressing modes.
fn loads_frame_record(word: u32) -> bool {
    const REGISTERS: u32 = 0b11111_11111_11111;
    const X29_X30_SP: u32 = (30 << 10) | (31 << 5) | 29;
    let same_registers = word & (0x1f << 10 | 0x1f << 5 | 0x1f) == X29_X30_SP;
    let opcode = word & !((0x7f << 15) | REGISTERS);
    same_registers && matches!(opcode, 0xa940_0000 | 0xa8c0_0000 | 0xa9c0_0000)
}

/// Whether a function can return to the address between these bytes: after bl or blr, or to the
/// trampoline behind signal handlers.
pub(super) fn is_return_address(before: &[u8], after: &[u8]) -> bool {
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let call = before.len().checked_sub(4).and_then(|at| word(before, at));
    let is_call = |word: u32| {
        word >> 26 == 0b100101
            || word & 0xffff_fc1f == 0xd63f_0000
            || word & 0xfeff_f800 == 0xd63f_0800
    };
    call.is_some_and(is_call) || [word(after, 0), word(after, 4)] == SIGNAL_RETURN.map(Some)
}

/// The target of the call at the end of these bytes.
pub(super) fn called(before: &[u8], target: u64) -> Option<Called> {
    match call_target(before, target) {
        Some(function) => Some(Called::Function(function)),
        None => is_return_address(before, &[]).then_some(Called::Anything),
    }
}

/// The target of the `bl` at the end of these bytes.
fn call_target(before: &[u8], target: u64) -> Option<u64> {
    let word = u32::from_le_bytes(*before.last_chunk()?);
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
