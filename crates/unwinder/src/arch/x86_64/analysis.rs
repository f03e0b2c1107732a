//! Leaves a function without CFI: its code is followed, without running it, until it returns.
//!
//! Registers and stack slots are tracked as "what register R held at the start, plus N". At the
//! `ret`, the stack pointer's value says where the return address is, and the registers that
//! were popped on the way show where the caller's values are saved.

use std::ops::Range;

use iced_x86::{Mnemonic, Register};

use super::decode::{Kind, Window, kind};
use super::state::{Clobbers, State};
use super::{FRAME_RECORD, RBP, RSP, SIGNAL_RETURN, frame};
use crate::arch::Code;
use crate::rule::{CompactRule, Rule};

/// The most instructions to follow.
const STEPS: usize = 3_000;
/// The most conditional jumps whose other side is tried if the first leads nowhere.
const BRANCHES: usize = 24;
/// The most jumps to remember for detecting loops.
const JUMPS: usize = 64;

/// The rule for the code at `target`.
pub(in crate::arch) fn analyze(code: Code<'_>, target: u64, entry: u64) -> Rule {
    let mut returns_from_signal = |start| {
        let mut bytes = [0; SIGNAL_RETURN.len()];
        code(start, &mut bytes) == bytes.len() && bytes == SIGNAL_RETURN
    };
    // Behind its instructions, the thread is in the system call, which has restored nothing yet.
    let call = target.checked_sub(SIGNAL_RETURN.len() as u64);
    if returns_from_signal(target) || call.is_some_and(&mut returns_from_signal) {
        return Rule::SignalReturn;
    }
    if entry != 0 && is_program_entry(code, target, entry) {
        return Rule::ProgramEntry;
    }
    match follow(code, target) {
        Some(rule) => Rule::Guess(rule),
        None => Rule::Unknown,
    }
}

/// Rules by the code before `target`, from where its function may start, nearest first; until there
/// are `enough`. For functions that end with a call that never returns.
pub(in crate::arch) fn analyze_from_entry(
    code: Code<'_>,
    target: u64,
    enough: &mut dyn FnMut(CompactRule) -> bool,
) -> bool {
    /// The alignment of functions by compilers.
    const ALIGNMENT: u64 = 16;
    const CANDIDATES: u64 = 64;
    let nearest = target.saturating_sub(1) & !(ALIGNMENT - 1);
    (0..CANDIDATES)
        .map_while(|index| nearest.checked_sub(index * ALIGNMENT))
        .filter_map(|start| {
            let mut before = [0; 5];
            let read = code(start.checked_sub(5)?, &mut before);
            let starts = read == before.len() && ends_function(&before);
            starts.then(|| follow_to(code, start, target))?
        })
        .any(enough)
}

/// The rule at `target` in terms of the stack pointer, in a function that starts at `start` and
/// whose code leads there.
pub(in crate::arch) fn follow_to(code: Code<'_>, start: u64, target: u64) -> Option<CompactRule> {
    state_at(code, start, target)?.rule_from_entry()
}

/// Whether the function that starts at `start` has a frame pointer at `target`, where its CFA is
/// that far from the stack pointer; `None` if its code does not show it.
pub(in crate::arch) fn has_frame_pointer(
    code: Code<'_>,
    start: u64,
    target: u64,
    cfa_offset: i32,
) -> Option<bool> {
    state_at(code, start, target)?.has_frame_pointer(cfa_offset)
}

/// The state at `target` of a function that starts at `start` and whose code leads there.
fn state_at(code: Code<'_>, start: u64, target: u64) -> Option<State> {
    let (mut window, mut clobbers) = (Window::default(), Clobbers::new());
    let mut state = State::new(start);
    // Code after the end of a path is reached by an earlier branch; code after a jump of a function
    // that has a frame, which is no tail call, from further down with the same frame.
    let mut at_branch = None;
    while state.at < target {
        let instruction = window.decode(code, state.at)?;
        state.at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Next => state.run(&instruction, &mut clobbers),
            Kind::Call => state.call(),
            Kind::Branch(_) => at_branch = Some(state),
            Kind::Jump(_) | Kind::IndirectJump if state.has_frame() => {}
            _ => {
                let next = state.at;
                state = at_branch?;
                state.at = next;
            }
        }
    }
    (state.at == target).then_some(state)
}

/// The rule at `target` if straight-line code leads from there to the function's return.
pub(in crate::arch) fn epilogue(code: Code<'_>, target: u64) -> Option<CompactRule> {
    const LONGEST: usize = 8;
    let (mut window, mut clobbers) = (Window::default(), Clobbers::new());
    let mut state = State::new(target);
    for _ in 0..LONGEST {
        let instruction = window.decode(code, state.at)?;
        state.at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Next => state.run(&instruction, &mut clobbers),
            Kind::Branch(_) => {}
            Kind::Return => return state.rule(),
            _ => return None,
        }
    }
    None
}

/// The rule at `target` in code that keeps frame pointers and starts at `start`, if that is known:
/// by the frame record, unless that is not there yet, or was removed. `interrupted`: otherwise, the
/// code is in the call before `target`.
pub(in crate::arch) fn by_frame_record(
    code: Code<'_>,
    start: Option<u64>,
    target: u64,
    interrupted: bool,
) -> Option<CompactRule> {
    /// Records are created before that.
    const PROLOGUE: u64 = 64;
    let is_near = |start: &u64| target.wrapping_sub(*start) < PROLOGUE;
    if let Some(start) = start.filter(is_near)
        && let Some(rule) = before_record(code, start, target, interrupted)
    {
        return Some(rule);
    }
    match interrupted && has_left_record(code, target) {
        true => epilogue(code, target),
        false => frame(RBP, FRAME_RECORD),
    }
}

/// The rule at `target` if code that starts at `start` has not created its record there: it does so
/// itself, or calls V8's common prologue.
fn before_record(
    code: Code<'_>,
    start: u64,
    target: u64,
    interrupted: bool,
) -> Option<CompactRule> {
    let (mut window, mut at, mut pushed) = (Window::default(), start, false);
    while at < target {
        let instruction = window.decode(code, at)?;
        at = instruction.next_ip();
        let operands = (instruction.op0_register(), instruction.op1_register());
        match (instruction.mnemonic(), operands) {
            (Mnemonic::Push, (Register::RBP, _)) => pushed = true,
            (Mnemonic::Mov, (Register::RBP, Register::RSP)) => return None,
            _ if kind(&instruction) == Kind::Call && (interrupted || at < target) => return None,
            _ => {}
        }
    }
    match pushed {
        true => frame(RSP, FRAME_RECORD),
        false => Some(CompactRule {
            cfa_register: RSP,
            cfa_offset: 8,
            return_address: Some(-1),
            ..CompactRule::default()
        }),
    }
}

/// Whether the code at `target` goes straight to its return without removing the record, which it
/// has done before.
fn has_left_record(code: Code<'_>, target: u64) -> bool {
    const LONGEST: usize = 8;
    let (mut window, mut at) = (Window::default(), target);
    for _ in 0..LONGEST {
        let Some(instruction) = window.decode(code, at) else {
            return false;
        };
        at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Return => return true,
            Kind::Next | Kind::Branch(_) => {}
            _ => return false,
        }
        let operands = (instruction.op0_register(), instruction.op1_register());
        if let (Mnemonic::Leave, _)
        | (Mnemonic::Pop, (Register::RBP, _))
        | (Mnemonic::Mov, (Register::RSP, Register::RBP)) = (instruction.mnemonic(), operands)
        {
            return false;
        }
    }
    false
}

/// Reports the targets of jumps out of a function; returns whether these are all.
pub(in crate::arch) fn jumps_out(
    code: Code<'_>,
    function: Range<u64>,
    to: &mut dyn FnMut(u64),
) -> bool {
    /// Longer functions would take too long.
    const LONGEST: u64 = 16 << 10;
    /// A call in a shorter one may only serve to jump by `ret` (retpolines).
    const SHORT: u64 = 32;
    let length = function.end.saturating_sub(function.start);
    if length > LONGEST {
        return false;
    }
    let (mut window, mut at, mut all) = (Window::default(), function.start, true);
    while at < function.end {
        let Some(instruction) = window.decode(code, at) else {
            return false;
        };
        at = instruction.next_ip();
        match kind(&instruction) {
            Kind::Jump(target) | Kind::Branch(target) if !function.contains(&target) => to(target),
            Kind::IndirectJump => all = false,
            Kind::Call => all &= length > SHORT,
            _ => {}
        }
    }
    all
}

/// Whether a function or the padding after it can end with these bytes.
fn ends_function(before: &[u8; 5]) -> bool {
    matches!(before, [.., 0xc3 | 0xcc | 0x90 | 0xf4 | 0x00])
        || matches!(before, [0xe8 | 0xe9, ..] | [.., 0xeb, _] | [.., 0x0f, 0x0b])
}

/// Whether `target` is in the straight line of code that starts at the module's entry point. The
/// kernel's stack for a new program has no return address, and entry code never returns.
fn is_program_entry(code: Code<'_>, target: u64, entry: u64) -> bool {
    const LONGEST: u64 = 160;
    if !(entry..entry.saturating_add(LONGEST)).contains(&target) {
        return false;
    }
    let mut window = Window::default();
    let mut at = entry;
    while at < target {
        let Some(instruction) = window.decode(code, at) else {
            return false;
        };
        at = instruction.next_ip();
        if !matches!(
            kind(&instruction),
            Kind::Next | Kind::Call | Kind::Branch(_)
        ) {
            return false;
        }
    }
    true
}

/// The same for Go: the entry point jumps to `_rt0_amd64`, and that to `runtime.rt0_go`, a larger
/// function that never returns.
pub(in crate::arch) fn is_go_entry(code: Code<'_>, target: u64, entry: u64) -> bool {
    const JUMPS: u32 = 2;
    const STRAIGHT: u32 = 4;
    const LONGEST: u64 = 640;
    let mut window = Window::default();
    let mut start = entry;
    for jump in 0..JUMPS {
        let mut at = start;
        let mut found = None;
        for step in 0..STRAIGHT {
            let Some(instruction) = window.decode(code, at) else {
                return false;
            };
            at = instruction.next_ip();
            match kind(&instruction) {
                Kind::Jump(target) => {
                    found = Some(target);
                    break;
                }
                Kind::Next if jump > 0 || step > 0 => {}
                // Go's entry point is only a jump.
                _ => return false,
            }
        }
        match found {
            Some(next) => start = next,
            None => return false,
        }
    }
    target == entry || (start..start.saturating_add(LONGEST)).contains(&target)
}

fn follow(code: Code<'_>, target: u64) -> Option<CompactRule> {
    let (mut window, mut clobbers) = (Window::default(), Clobbers::new());
    let mut branches = [None; BRANCHES];
    let mut waiting = 0;
    let mut jumps = [0_u64; JUMPS];
    let mut jumped = 0;
    let mut state = State::new(target);
    for _ in 0..STEPS {
        let instruction = window.decode(code, state.at);
        let kind = instruction.as_ref().map_or(Kind::Stop, kind);
        let here = state.at;
        state.at = instruction.map_or(here, |instruction| instruction.next_ip());
        let dead = match kind {
            Kind::Next => {
                state.run(&instruction?, &mut clobbers);
                false
            }
            Kind::Call => {
                state.call();
                false
            }
            Kind::Return | Kind::IndirectJump => match state.rule() {
                Some(rule) => return Some(rule),
                None => true,
            },
            Kind::Jump(target) => {
                state.at = target;
                let seen = jumps[..jumped.min(JUMPS)].contains(&here);
                jumps[jumped % JUMPS] = here;
                jumped += 1;
                seen
            }
            Kind::Branch(other) => {
                let seen = jumps[..jumped.min(JUMPS)].contains(&here);
                if !seen && other > here && waiting < BRANCHES {
                    jumps[jumped % JUMPS] = here;
                    jumped += 1;
                    let mut taken = state;
                    taken.at = other;
                    branches[waiting] = Some(taken);
                    waiting += 1;
                }
                false
            }
            Kind::Stop => true,
        };
        if dead {
            waiting = waiting.checked_sub(1)?;
            state = branches[waiting]?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{LAYOUT, RBP, RBX, RSP};
    use super::*;

    const TEXT: u64 = 0x1000;

    fn analyze_at(bytes: &[u8], offset: u64, entry: u64) -> Rule {
        let mut code = |address: u64, buffer: &mut [u8]| {
            let rest = address
                .checked_sub(TEXT)
                .and_then(|at| usize::try_from(at).ok())
                .and_then(|at| bytes.get(at..))
                .unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        };
        analyze(&mut code, TEXT + offset, entry)
    }

    /// The rule at each of the offsets: (offset, CFA register, offset from it, saved registers
    /// as (DWARF number, offset from the CFA)).
    #[expect(clippy::type_complexity, reason = "a table")]
    fn check(bytes: &[u8], expected: &[(u64, u8, i32, &[(u8, i64)])]) {
        for &(offset, cfa_register, cfa_offset, saved) in expected {
            let mut rule = CompactRule {
                cfa_register,
                cfa_offset,
                return_address: Some(-1),
                ..CompactRule::default()
            };
            for &(register, at) in saved {
                let slot = LAYOUT.saved_slot(u16::from(register)).unwrap();
                rule.save(slot, at).unwrap();
            }
            assert_eq!(analyze_at(bytes, offset, 0), Rule::Guess(rule), "{offset}");
        }
    }

    #[test]
    fn pushes_and_pops() {
        // push %rbx; push %r12; sub $24,%rsp; 1: dec %rax; jnz 1b; add $24,%rsp; pop %r12;
        // pop %rbx; ret
        let code = [
            0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 0x18, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x48, 0x83,
            0xc4, 0x18, 0x41, 0x5c, 0x5b, 0xc3,
        ];
        let saved: &[(u8, i64)] = &[(RBX, -16), (12, -24)];
        check(
            &code,
            &[
                (0, RSP, 8, &[]),
                (1, RSP, 16, &[(RBX, -16)]),
                (3, RSP, 24, saved),
                (7, RSP, 48, saved),
                (10, RSP, 48, saved),
                (16, RSP, 24, saved),
                (18, RSP, 16, &[(RBX, -16)]),
                (19, RSP, 8, &[]),
            ],
        );
    }

    /// As Go's compiler has them, whose CFI does not speak of them.
    #[test]
    fn frame_pointers_that_no_cfi_names() {
        // cmp 16(%r14),%rsp; jbe 40; sub $64,%rsp; mov %rbp,56(%rsp); lea 56(%rsp),%rbp; call +0;
        // test %eax,%eax; je 39; mov 56(%rsp),%rbp; add $64,%rsp; ret; 39: nop; 40: call +0
        let code = [
            0x49, 0x3b, 0x66, 0x10, 0x76, 0x22, 0x48, 0x83, 0xec, 0x40, 0x48, 0x89, 0x6c, 0x24,
            0x38, 0x48, 0x8d, 0x6c, 0x24, 0x38, 0xe8, 0, 0, 0, 0, 0x85, 0xc0, 0x74, 0x0a, 0x48,
            0x8b, 0x6c, 0x24, 0x38, 0x48, 0x83, 0xc4, 0x40, 0xc3, 0x90, 0xe8, 0, 0, 0, 0,
        ];
        let mut read = |address: u64, buffer: &mut [u8]| {
            let rest = code.get((address - TEXT) as usize..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        };
        let mut has = |at, cfa_offset| has_frame_pointer(&mut read, TEXT, TEXT + at, cfa_offset);
        for (at, cfa_offset, expected) in [
            (0, 8, Some(false)),
            (10, 72, Some(false)),
            (15, 72, Some(false)),
            (20, 72, Some(true)),
            (29, 72, Some(true)),
            (34, 72, Some(false)),
            (38, 8, Some(false)),
            (39, 72, Some(true)),
            (40, 8, Some(false)),
            (12, 72, None),
        ] {
            assert_eq!(has(at, cfa_offset), expected, "{at}");
        }
    }

    #[test]
    fn frame_pointers() {
        // push %rbp; mov %rsp,%rbp; sub $64,%rsp; call +0; leave; ret
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, 0xe8, 0, 0, 0, 0, 0xc9, 0xc3,
        ];
        check(
            &code,
            &[
                (0, RSP, 8, &[]),
                (1, RSP, 16, &[(RBP, -16)]),
                (4, RBP, 16, &[(RBP, -16)]),
                (13, RBP, 16, &[(RBP, -16)]),
                (14, RSP, 8, &[]),
            ],
        );
    }

    #[test]
    fn segment_registers_take_a_word() {
        // push %fs; pop %fs; ret
        let code = [0x0f, 0xa0, 0x0f, 0xa1, 0xc3];
        check(
            &code,
            &[(0, RSP, 8, &[]), (2, RSP, 16, &[]), (4, RSP, 8, &[])],
        );
    }

    #[test]
    fn code_that_does_not_return_is_unknown() {
        // ud2
        assert_eq!(analyze_at(&[0x0f, 0x0b], 0, 0), Rule::Unknown);
        // 1: jmp 1b
        assert_eq!(analyze_at(&[0xeb, 0xfe], 0, 0), Rule::Unknown);
        // and $-64,%rsp; ret
        assert_eq!(
            analyze_at(&[0x48, 0x83, 0xe4, 0xc0, 0xc3], 0, 0),
            Rule::Unknown
        );
    }

    #[test]
    fn known_places() {
        assert_eq!(analyze_at(&SIGNAL_RETURN, 0, 0), Rule::SignalReturn);
        // In the system call, which never returns there.
        let code = [&SIGNAL_RETURN[..], &[0x0f, 0x1f, 0, 0xc3]].concat();
        assert_eq!(analyze_at(&code, 9, 0), Rule::SignalReturn);
        assert_ne!(analyze_at(&code, 12, 0), Rule::SignalReturn);
        // mov %rsp,%rdi; call +0; hlt; ret
        let code = [0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0xf4, 0xc3];
        assert_eq!(analyze_at(&code, 8, TEXT), Rule::ProgramEntry);
        assert_ne!(analyze_at(&code, 9, TEXT), Rule::ProgramEntry);
    }
}
