//! Checks of a caller that was found.

use prof_model::StackEnd;

use crate::code::patterns::{ends_coroutine, is_return_address};
use crate::frame::{Caller, Frame};
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::step::Step;
use crate::step::call_edges::check_call;

/// How far above a return address of 0 to search for others. Stacks allocated side by side are
/// mostly larger.
const ABOVE_ZERO: u64 = 8 << 10;

/// Whether a caller found by CFI is possible. `callee` is the code address of the step's frame, if
/// that was called.
pub(crate) fn check(
    step: &mut Step<'_, '_>,
    callee: Option<&CodeMapping>,
    caller: &Caller,
) -> Result<(), StackEnd> {
    let (frame, from_live) = (&caller.frame, caller.evidence.from_live);
    let target = frame.registers.get(frame.layout.program_counter);
    let target = target.ok_or(StackEnd::UnreadableMemory)?;
    if target == 0 && !frame.interrupted {
        return Err(end_at_zero(step, frame, from_live));
    }
    let nowhere = match from_live {
        true => StackEnd::Stale,
        false => StackEnd::NotCode,
    };
    let place = step.code.locate(frame.lookup_address()).ok_or(nowhere)?;
    let stands_still = frame.stack_pointer() == step.frame.stack_pointer()
        && target == step.frame.program_counter();
    if stands_still {
        return Err(StackEnd::Loop);
    }
    if (from_live || frame.layout.has_link_register()) && !frame.interrupted {
        let follows_call = is_return_address(step.code, &place, target);
        if follows_call == Some(false) && !ends_coroutine(step.code, &place, target) {
            return Err(match starts_coroutine(step, callee, &place, target) {
                true => StackEnd::Root,
                false => nowhere,
            });
        }
        if let (Some(true), Some(callee)) = (follows_call, callee) {
            check_call(step, callee, &place, frame)?;
        }
    }
    Ok(())
}

/// Whether a coroutine library has jumped to the frame's function by a return: where calls leave
/// the return address in a register, that then has the function's own address.
fn starts_coroutine(
    step: &mut Step<'_, '_>,
    callee: Option<&CodeMapping>,
    place: &CodeMapping,
    target: u64,
) -> bool {
    let Some(callee) = callee.filter(|_| step.frame.layout.has_link_register()) else {
        return false;
    };
    let at = callee.code_address(step.frame.lookup_address());
    let start = step.code.function(at).map(|function| function.start);
    at.module == place.module && start == Some(place.elf_address(target))
}

/// How a stack ends at a return address of 0 that CFI led to: creators of a stack put one below its
/// first function. CFI that does not fit the code finds zeros, too: in the middle of a stack, with
/// return addresses further up.
fn end_at_zero(step: &mut Step<'_, '_>, caller: &Frame, from_live: bool) -> StackEnd {
    // This may be a stack that was freed meanwhile: zeros everywhere, and no overlap distinguishes
    // the dump's zeros from these.
    if from_live && step.stack.is_overlap_blank() {
        return StackEnd::Stale;
    }
    match was_called_above(step, caller.stack_pointer()) {
        true if from_live => StackEnd::Stale,
        true => StackEnd::NotCode,
        false => StackEnd::Root,
    }
}

/// Whether there is a return address in the known bytes of the stack from `start` up.
fn was_called_above(step: &mut Step<'_, '_>, start: u64) -> bool {
    let mask = step.frame.layout.address_mask;
    let words = (start..start.saturating_add(ABOVE_ZERO)).step_by(8);
    let words = words.map_while(|address| step.stack.at_hand(address));
    words.map(|word| word.value & mask).any(|target| {
        let place = target
            .checked_sub(1)
            .and_then(|call| step.code.locate(call));
        place.is_some_and(|place| is_return_address(step.code, &place, target) == Some(true))
    })
}

/// A guessed caller, if it is further up the stack and its address is known to follow a call.
pub(crate) fn validate(step: &mut Step<'_, '_>, registers: Registers) -> Option<Caller> {
    let layout = step.frame.layout;
    let (was, now) = (
        step.frame.stack_pointer(),
        registers.last(layout.stack_pointer),
    );
    let leaf = now == was && layout.has_link_register() && step.frame.interrupted;
    if now <= was && !leaf {
        return None;
    }
    follows_call(step, &registers, false).then(|| step.caller(registers))
}

/// Whether the registers' program counter follows a call; `otherwise` is the answer if the code is
/// unavailable.
pub(crate) fn follows_call(
    step: &mut Step<'_, '_>,
    registers: &Registers,
    otherwise: bool,
) -> bool {
    let target = registers.get(step.frame.layout.program_counter);
    let call = target.and_then(|target| target.checked_sub(1));
    let (Some(target), Some(place)) = (target, call.and_then(|call| step.code.locate(call))) else {
        return false;
    };
    match is_return_address(step.code, &place, target) {
        Some(known) => known,
        None if step.frame.layout.has_link_register() => follows_run_time_call(step, target),
        None => otherwise,
    }
}

/// Whether an address of run-time code follows a call, by the live target's memory.
fn follows_run_time_call(step: &mut Step<'_, '_>, target: u64) -> bool {
    let mut bytes = [0; 16];
    let (before, start) = (8, target.wrapping_sub(8));
    let count = step.stack.read_elsewhere(start, &mut bytes);
    let (before, after) = bytes.split_at(before);
    count == bytes.len() && step.code.architecture().is_return_address(before, after)
}
