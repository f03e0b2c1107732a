//! Leaves a function without CFI: its code is followed, without running it, until it returns, or
//! from its start on.
//!
//! ```text
//!   │ caller's frame            stp x29, x30, [sp, #-96]!
//!   ├ CFA                       mov x29, sp                  x29 leads to the record at the
//!   │ variables                 ...                          *bottom* of the frame: where the
//!   │ x30                       ldp x29, x30, [sp], #96      frame ends, only the code says
//!   └ x29   <── x29, sp         ret
//! ```

use std::ops::Range;

use super::decode::{Effect, Kind, effect, kind};
use super::state::{State, Value};
use super::{FP, FRAME_RECORD, LR, SIGNAL_RETURN, SP, frame};
use crate::arch::Code;
use crate::rule::{CompactRule, Rule};

/// The most instructions to follow.
const STEPS: usize = 3_000;
/// The most conditional jumps whose other side is tried if the first leads nowhere.
const BRANCHES: usize = 24;
/// The most jumps to remember for detecting loops.
const JUMPS: usize = 64;
/// The registers through which procedure linkage tables and tail calls jump.
const LINKAGE: Range<u8> = 16..18;

/// The rule for the code at `target`.
pub(in crate::arch) fn analyze(code: Code<'_>, target: u64, entry: u64) -> Rule {
    let mut window = Window::default();
    let mut is_signal_return = |start: u64| {
        let mut words = (start..).step_by(4);
        let mut next = || words.next().and_then(|at| window.word(code, at));
        SIGNAL_RETURN.iter().all(|&word| next() == Some(word))
    };
    // Behind its instructions, the thread is in the system call, which has restored nothing yet.
    let length = 4 * SIGNAL_RETURN.len() as u64;
    if is_signal_return(target) || target.checked_sub(length).is_some_and(is_signal_return) {
        return Rule::SignalReturn;
    }
    if entry != 0 && is_program_entry(code, target, entry) {
        return Rule::ProgramEntry;
    }
    follow(code, target).unwrap_or(Rule::Unknown)
}

/// Rules by the code before `target`, from where its function may save its return address, nearest
/// first; until there are `enough`. For functions that end with a call that never returns.
pub(in crate::arch) fn analyze_from_entry(
    code: Code<'_>,
    target: u64,
    enough: &mut dyn FnMut(CompactRule) -> bool,
) -> bool {
    const REACH: u64 = 4096;
    let mut window = Window::default();
    for distance in (4..=REACH).step_by(4) {
        let Some(at) = target.checked_sub(distance) else {
            return false;
        };
        let Some(word) = window.word(code, at) else {
            return false;
        };
        if !saves_link(word) {
            continue;
        }
        let start = prologue(&mut window, code, at);
        if let Some(rule) = follow_to(code, start, target)
            && rule.return_address.is_some()
            && enough(rule)
        {
            return true;
        }
    }
    false
}

/// The first of the instructions up to `at` that make room on the stack.
fn prologue(window: &mut Window, code: Code<'_>, mut at: u64) -> u64 {
    const LONGEST: usize = 12;
    let mut start = at;
    for _ in 0..LONGEST {
        at = at.wrapping_sub(4);
        match window.word(code, at).map(effect) {
            Some(Effect::Add(SP, SP, amount)) if amount < 0 => start = at,
            Some(Effect::Access(access)) if access.base == SP && !access.is_load => start = at,
            Some(Effect::None | Effect::Sets(0..=17)) => {}
            _ => break,
        }
    }
    start
}

/// Whether an instruction stores x30 on the stack.
fn saves_link(word: u32) -> bool {
    match effect(word) {
        Effect::Access(access) => {
            access.base == SP
                && access.is_wide
                && !access.is_load
                && access.registers.contains(&Some(LR))
        }
        _ => false,
    }
}

/// The rule at `target` in a function that starts at `start` and whose code leads there.
pub(in crate::arch) fn follow_to(code: Code<'_>, start: u64, target: u64) -> Option<CompactRule> {
    state_at(code, start, target)?.rule_from_entry()
}

/// Whether the frame pointer points to a frame record at `target`, in the function that starts at
/// `start`, if that is known; `None` if the code does not show it.
pub(in crate::arch) fn sets_frame_pointer(
    code: Code<'_>,
    start: Option<u64>,
    target: u64,
) -> Option<bool> {
    const REACH: u64 = 4096;
    let mut window = Window::default();
    let start = match start {
        Some(start) => start,
        None => {
            let mut places = (4..=REACH)
                .step_by(4)
                .map_while(|it| target.checked_sub(it));
            let saves = |&at: &u64| window.word(code, at).is_some_and(saves_link);
            let at = places.find(saves)?;
            prologue(&mut window, code, at)
        }
    };
    state_at(code, start, target)?.has_frame_pointer()
}

/// The state at `target` of a function that starts at `start` and whose code leads there.
fn state_at(code: Code<'_>, start: u64, target: u64) -> Option<State> {
    let mut window = Window::default();
    let mut state = State::new(start);
    // Code after the end of a path is reached by an earlier branch; code after a jump of a function
    // that has a frame, which is no tail call, from further down with the same frame.
    let mut at_branch = None;
    while state.at < target {
        let word = window.word(code, state.at)?;
        let here = state.at;
        state.at += 4;
        match kind(word, here) {
            Kind::Next => state.run(word),
            Kind::Call => state.call(),
            Kind::Branch(_) => at_branch = Some(state),
            Kind::Jump(_) | Kind::IndirectJump(_) if state.has_frame() => {}
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
    const LONGEST: usize = 12;
    let mut window = Window::default();
    let mut state = State::new(target);
    for _ in 0..LONGEST {
        let word = window.word(code, state.at)?;
        match kind(word, state.at) {
            Kind::Next => state.run(word),
            Kind::Branch(_) => {}
            Kind::Return(link) => return state.rule(link),
            _ => return None,
        }
        state.at += 4;
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
    const PROLOGUE: u64 = 128;
    let is_near = |start: &u64| target.wrapping_sub(*start) < PROLOGUE;
    if let Some(state) = start
        .filter(is_near)
        .and_then(|it| state_at(code, it, target))
        && state.has_frame_pointer() == Some(false)
        && let Some(rule) = state.rule_from_entry()
    {
        return Some(rule);
    }
    match interrupted && has_left_record(code, target) {
        // The code goes on to remove the arguments, two words or more.
        true => Some(CompactRule {
            cfa_register: SP,
            cfa_offset: 16,
            ..CompactRule::default()
        }),
        false => frame(FP, FRAME_RECORD),
    }
}

/// Whether the code at `target` goes straight to its return, with the return address and the
/// caller's frame pointer in their registers.
fn has_left_record(code: Code<'_>, target: u64) -> bool {
    const LONGEST: usize = 12;
    let mut window = Window::default();
    let mut state = State::new(target);
    for _ in 0..LONGEST {
        let Some(word) = window.word(code, state.at) else {
            return false;
        };
        match kind(word, state.at) {
            Kind::Next => state.run(word),
            Kind::Branch(_) => {}
            Kind::Return(link) => {
                let kept = [link, FP].map(|register| state.get(register));
                return kept == [Value::Register(LR, 0), Value::Register(FP, 0)];
            }
            _ => return false,
        }
        state.at += 4;
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
    if function.end.saturating_sub(function.start) > LONGEST {
        return false;
    }
    let (mut window, mut all) = (Window::default(), true);
    for at in function.clone().step_by(4) {
        let Some(word) = window.word(code, at) else {
            return false;
        };
        match kind(word, at) {
            Kind::Jump(target) | Kind::Branch(target) if !function.contains(&target) => to(target),
            Kind::IndirectJump(_) => all = false,
            _ => {}
        }
    }
    all
}

/// Whether `target` is in the straight line of code that starts at the module's entry point. The
/// kernel's stack for a new program has no return address, and entry code never returns.
fn is_program_entry(code: Code<'_>, target: u64, entry: u64) -> bool {
    const LONGEST: u64 = 160;
    if !(entry..entry.saturating_add(LONGEST)).contains(&target) {
        return false;
    }
    let mut window = Window::default();
    (entry..target).step_by(4).all(|at| {
        let kind = window.word(code, at).map(|word| kind(word, at));
        matches!(kind, Some(Kind::Next | Kind::Call | Kind::Branch(_)))
    })
}

fn follow(code: Code<'_>, target: u64) -> Option<Rule> {
    let mut window = Window::default();
    let mut branches = [None; BRANCHES];
    let mut waiting = 0;
    let mut jumps = [0_u64; JUMPS];
    let mut jumped = 0;
    let mut state = State::new(target);
    for _ in 0..STEPS {
        let here = state.at;
        let word = window.word(code, here);
        state.at = here.wrapping_add(4);
        let kind = word.map_or(Kind::Stop, |word| kind(word, here));
        let seen = jumps[..jumped.min(JUMPS)].contains(&here);
        if let (Kind::Jump(_) | Kind::Branch(_), false) = (kind, seen) {
            jumps[jumped % JUMPS] = here;
            jumped += 1;
        }
        let dead = match kind {
            Kind::Next => {
                state.run(word?);
                false
            }
            Kind::Call => {
                state.call();
                false
            }
            Kind::Return(link) => match state.rule(link) {
                Some(rule) => return Some(Rule::Guess(rule)),
                None if state.has_restored_record(link) => return Some(Rule::FrameRecord),
                None => true,
            },
            Kind::IndirectJump(_) if state.has_restored_record(LR) => {
                return Some(Rule::FrameRecord);
            }
            // Other registers may be those of a jump table, in the middle of a function.
            Kind::IndirectJump(register) if LINKAGE.contains(&register) => match state.rule(LR) {
                Some(rule) => return Some(Rule::Guess(rule)),
                None => true,
            },
            Kind::Jump(target) => {
                state.at = target;
                seen
            }
            Kind::Branch(other) => {
                if !seen && other > here && waiting < BRANCHES {
                    let mut taken = state;
                    taken.at = other;
                    branches[waiting] = Some(taken);
                    waiting += 1;
                }
                false
            }
            Kind::IndirectJump(_) | Kind::Stop => true,
        };
        if dead {
            waiting = waiting.checked_sub(1)?;
            state = branches[waiting]?;
        }
    }
    None
}

/// A piece of code.
pub(super) struct Window {
    start: u64,
    filled: usize,
    bytes: [u8; Window::SIZE],
}

impl Default for Window {
    fn default() -> Self {
        Self {
            start: 0,
            filled: 0,
            bytes: [0; Self::SIZE],
        }
    }
}

impl Window {
    const SIZE: usize = 256;

    /// The instruction at this address; `None` if it cannot be read.
    pub(super) fn word(&mut self, code: Code<'_>, at: u64) -> Option<u32> {
        // Code may begin or end within a piece.
        let piece = at & !(Self::SIZE as u64 - 1);
        for start in [piece, at] {
            if let Some(word) = self.known(at) {
                return Some(word);
            }
            (self.start, self.filled) = (start, code(start, &mut self.bytes));
        }
        self.known(at)
    }

    fn known(&self, at: u64) -> Option<u32> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(..self.filled)?.get(offset..)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LAYOUT;
    use super::*;

    const TEXT: u64 = 0x1000;

    fn reader(words: &[u32]) -> impl FnMut(u64, &mut [u8]) -> usize {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        move |address, buffer| {
            let offset = address.checked_sub(TEXT).map(|offset| offset as usize);
            let rest = offset.and_then(|at| bytes.get(at..)).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    /// A rule: CFA register, offset from it, return address, saved registers as (DWARF number,
    /// offset from the CFA).
    fn rule(
        (cfa_register, cfa_offset): (u8, i32),
        return_address: Option<i16>,
        saved: &[(u8, i64)],
    ) -> CompactRule {
        let mut rule = CompactRule {
            cfa_register,
            cfa_offset,
            return_address,
            ..CompactRule::default()
        };
        for &(register, at) in saved {
            let slot = LAYOUT.saved_slot(u16::from(register)).unwrap();
            rule.save(slot, at).unwrap();
        }
        rule
    }

    fn check(words: &[u32], index: u64, expected: Rule) {
        let found = analyze(&mut reader(words), TEXT + 4 * index, 0);
        assert_eq!(found, expected, "{index}");
    }

    const STP_96: u32 = 0xa9ba_7bfd; // stp x29, x30, [sp, #-96]!
    const LDP_96: u32 = 0xa8c6_7bfd; // ldp x29, x30, [sp], #96
    const MOV_FP_SP: u32 = 0x9100_03fd;
    const BL: u32 = 0x9400_0100;
    const RET: u32 = 0xd65f_03c0;
    const STP_X19: u32 = 0xa901_53f3; // stp x19, x20, [sp, #16]
    const LDP_X19: u32 = 0xa941_53f3; // ldp x19, x20, [sp, #16]
    const LEAF: ((u8, i32), Option<i16>) = ((SP, 0), None);

    #[test]
    fn records_are_at_the_bottom_of_the_frame() {
        let code = [STP_96, MOV_FP_SP, STP_X19, BL, LDP_X19, LDP_96, RET];
        let record = [(FP, -96), (LR, -88)];
        let saved = [(19, -80), (20, -72), (FP, -96), (LR, -88)];
        check(&code, 0, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
        for index in 3..5 {
            check(&code, index, Rule::Guess(rule((SP, 96), Some(-11), &saved)));
        }
        check(&code, 5, Rule::Guess(rule((SP, 96), Some(-11), &record)));
        check(&code, 6, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
        // From the start on, without any return.
        let mut found = Vec::new();
        let endless = [STP_96, MOV_FP_SP, STP_X19, BL];
        analyze_from_entry(&mut reader(&endless), TEXT + 16, &mut |rule| {
            found.push(rule);
            false
        });
        assert_eq!(found, [rule((SP, 96), Some(-11), &saved)]);
    }

    #[test]
    fn functions_without_a_record() {
        // str x30, [sp, #-16]!; bl; ldr x30, [sp], #16; ret
        let code = [0xf81f_0ffe, BL, 0xf841_07fe, RET];
        check(&code, 0, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
        check(
            &code,
            1,
            Rule::Guess(rule((SP, 16), Some(-2), &[(LR, -16)])),
        );
        check(&code, 3, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
    }

    #[test]
    fn frames_of_variable_size() {
        // sub sp, sp, x0; bl; mov sp, x29; ldp x29, x30, [sp], #96; ret
        let mov_sp_fp = 0x9100_03bf;
        let code = [STP_96, MOV_FP_SP, 0xcb20_63ff, BL, mov_sp_fp, LDP_96, RET];
        let saved = [(FP, -96), (LR, -88)];
        check(&code, 3, Rule::Guess(rule((FP, 96), Some(-11), &saved)));
        // V8 also removes a number of arguments: mov sp, x29; ldp; add sp, sp, x1; ret
        let code = [BL, mov_sp_fp, 0xa8c1_7bfd, 0x8b21_63ff, RET];
        check(&code, 0, Rule::FrameRecord);
        // Its interpreter goes on with the next instruction: ldp x29, x30, [x29]; add sp, sp, #128;
        // br x17
        let code = [BL, 0xa940_7bbd, 0x9102_03ff, 0xd61f_0220];
        check(&code, 0, Rule::FrameRecord);
    }

    #[test]
    fn jumps() {
        // A jump table in a function with a frame: br x1; then a tail call: br x16.
        check(&[0xd61f_0020, RET], 0, Rule::Unknown);
        check(&[0xd61f_0200], 0, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
        // 0: cbz x0, 2; 1: brk; 2: ret
        let code = [0xb400_0040, 0xd420_0000, RET];
        check(&code, 0, Rule::Guess(rule(LEAF.0, LEAF.1, &[])));
        // b .
        check(&[0x1400_0000], 0, Rule::Unknown);
        // A call that does not return, then another function.
        check(&[BL, RET], 0, Rule::Unknown);
    }

    #[test]
    fn frame_pointers_are_set_after_the_record_is_stored() {
        let code = [STP_96, MOV_FP_SP, BL, LDP_96, RET, BL];
        let has = |index: u64, expected| {
            let at = TEXT + 4 * index;
            let found = sets_frame_pointer(&mut reader(&code), Some(TEXT), at);
            assert_eq!(found, expected, "{index}");
        };
        has(0, Some(false));
        has(1, Some(false));
        has(2, Some(true));
        has(3, Some(true));
        has(4, Some(false));
        let found = sets_frame_pointer(&mut reader(&code), None, TEXT + 12);
        assert_eq!(found, Some(true));
        // stp x29, x30 without mov x29, sp: a function that keeps another value in x29.
        let found = sets_frame_pointer(&mut reader(&[STP_96, BL]), None, TEXT + 8);
        assert_eq!(found, Some(false));
    }

    #[test]
    fn known_places() {
        check(&SIGNAL_RETURN, 0, Rule::SignalReturn);
        let behind = [SIGNAL_RETURN[0], SIGNAL_RETURN[1], 0xd503_201f, RET];
        check(&behind, 2, Rule::SignalReturn);
        // mov x29, #0; b .+8; ret; ret
        let code = [0xd280_001d, 0x1400_0002, RET, RET];
        let at = |index: u64| analyze(&mut reader(&code), TEXT + 4 * index, TEXT);
        assert_eq!(at(1), Rule::ProgramEntry);
        assert_ne!(at(2), Rule::ProgramEntry);
    }
}
