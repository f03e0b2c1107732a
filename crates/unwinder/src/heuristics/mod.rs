//! Steps for code without CFI, or whose CFI leads nowhere. Every guess must yield an address that
//! follows a call.

pub(crate) mod kernel_chain;

mod code_before;
mod frame_pointer;
mod hotspot_interpreter;
mod jit;
pub(crate) mod probes;
mod run_time_code;
mod thread_start;
mod trampoline;

use prof_model::StackEnd;

use crate::frame::Caller;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule};
use crate::step::Step;
use crate::step::apply::{apply, without_register};
use crate::step::check::validate;
use crate::step::lookup::remember_guess;
use code_before::{guess_by_code_before, guess_by_prologue};
use frame_pointer::follow_frame_pointer;
use jit::leave_jit_code;
use probes::leave_probed_instruction;
use run_time_code::leave_run_time_code;
use thread_start::is_thread_start;
use trampoline::leave_trampoline;

/// Larger frames have another explanation.
const FRAME: u64 = 8 << 20;

/// A step from code without CFI.
pub(crate) fn guess(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    rule: &Rule,
) -> Result<Caller, StackEnd> {
    if let Some(caller) = leave_jit_code(step, place) {
        return caller;
    }
    if let Some(caller) = leave_probed_instruction(step) {
        return Ok(caller);
    }
    let mut unreadable = None;
    match rule {
        Rule::SignalReturn => return leave_signal_handler(step),
        Rule::StackSwitch => return leave_other_stack(step),
        Rule::FrameRecord => {
            if let Some(caller) = follow_frame_pointer(step, FRAME) {
                return caller;
            }
            // The code says that there is one.
            let stale = step.from_live.then_some(StackEnd::Stale);
            if let Some(end) = step.stack.failure().or(stale) {
                return Err(end);
            }
        }
        // The stack is not the one that it was called on.
        Rule::CallFromGo if step.frame.interrupted => return Err(StackEnd::CalledFromGo),
        Rule::Guess(rule) if stays_near(step, rule) => match apply(step, rule) {
            Ok(registers) if is_outermost(step, &registers) => return Err(StackEnd::Root),
            Ok(registers) => {
                if let Some(caller) = validate(step, registers) {
                    return Ok(caller);
                }
            }
            Err(end) => unreadable = Some(end),
        },
        _ => {}
    }
    if is_thread_start(step, place) {
        return Err(StackEnd::Root);
    }
    if let Some(caller) = leave_trampoline(step, place) {
        return Ok(caller);
    }
    if let Some(caller) = leave_run_time_code(step, place) {
        return caller;
    }
    if let Some(found) = guess_by_code_before(step, place) {
        let (caller, rule) = found?;
        remember_guess(step.code, step.frame, place, &rule);
        return Ok(caller);
    }
    let otherwise = match rule {
        Rule::CallFromGo => StackEnd::CalledFromGo,
        _ if place.lacks_file => StackEnd::NoFile,
        _ => without_register(step.frame),
    };
    // If nothing else works either, the guess was right and its memory is missing.
    without_cfi(step, place, otherwise).map_err(|end| match unreadable {
        Some(reason) if end == otherwise => reason,
        _ => end,
    })
}

/// A step when the result of CFI was unavailable or impossible; `otherwise` is the reason if
/// nothing else works either.
pub(crate) fn without_cfi(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    otherwise: StackEnd,
) -> Result<Caller, StackEnd> {
    if matches!(
        otherwise,
        StackEnd::Root | StackEnd::TruncatedDump | StackEnd::Stale | StackEnd::Loop
    ) {
        return Err(otherwise);
    }
    if is_thread_start(step, place) {
        return Err(StackEnd::Root);
    }
    let mut found = guess_by_prologue(step, place).map(Ok);
    // With a link register, both need the evidence of the code: it may have called another function
    // since, and leave out callers.
    if !step.frame.layout.has_link_register() {
        found = found
            .or_else(|| leave_leaf(step).map(Ok))
            .or_else(|| follow_frame_pointer(step, FRAME));
    }
    found.unwrap_or(Err(
        match step.evidence.by_frame_pointer && otherwise == StackEnd::NoUnwindInfo {
            true => StackEnd::FramePointersEnded,
            false => otherwise,
        },
    ))
}

/// A step from an address outside of any known code: maybe the sample just got there by a call.
pub(crate) fn outside_code(step: &mut Step<'_, '_>) -> Result<Caller, StackEnd> {
    leave_leaf(step).ok_or(StackEnd::NoMappings)
}

/// A step to where the kernel interrupted the thread to deliver a signal.
fn leave_signal_handler(step: &mut Step<'_, '_>) -> Result<Caller, StackEnd> {
    let registers = signal_registers(step)?;
    let target = registers
        .get(step.frame.layout.program_counter)
        .ok_or(StackEnd::UnreadableMemory)?;
    step.code.locate(target).ok_or(StackEnd::NotCode)?;
    Ok(step.interrupted(registers))
}

/// The registers that the kernel saved when it delivered a signal.
fn signal_registers(step: &mut Step<'_, '_>) -> Result<Registers, StackEnd> {
    let architecture = step.code.architecture();
    let at = step.frame.stack_pointer();
    architecture.signal_registers(at, &mut |address| step.read(address))
}

/// A step back to the stack from which Go's `systemstack` came.
fn leave_other_stack(step: &mut Step<'_, '_>) -> Result<Caller, StackEnd> {
    if let Some(caller) = follow_frame_pointer(step, u64::MAX) {
        return caller;
    }
    let pointer = step.frame.registers.get(step.frame.layout.frame_pointer);
    Err(match step.stack.failure() {
        _ if pointer.is_none() => StackEnd::HiddenRegisters,
        Some(end) => end,
        // The memory is not a frame any more.
        None if step.from_live => StackEnd::Stale,
        None => StackEnd::UnreadableMemory,
    })
}

/// Whether these registers of a caller are those with which programs begin, if calls leave the
/// return address in a register: start code clears that and the frame pointer.
fn is_outermost(step: &Step<'_, '_>, registers: &Registers) -> bool {
    let layout = step.frame.layout;
    let is_zero = |register| registers.get(register) == Some(0);
    layout.has_link_register()
        && !step.from_live
        && is_zero(layout.program_counter)
        && is_zero(layout.frame_pointer)
}

/// A step from an interrupted function that has not touched the stack.
fn leave_leaf(step: &mut Step<'_, '_>) -> Option<Caller> {
    if !step.frame.interrupted {
        return None;
    }
    let layout = step.frame.layout;
    let rule = CompactRule {
        cfa_register: layout.stack_pointer,
        cfa_offset: layout.return_slot.map_or(0, |offset| -offset as i32),
        return_address: layout.return_slot.map(|_| -1),
        ..CompactRule::default()
    };
    let registers = apply(step, &rule).ok()?;
    validate(step, registers)
}

/// Whether a guessed rule leads to an address not far up the same stack.
fn stays_near(step: &Step<'_, '_>, rule: &CompactRule) -> bool {
    let (registers, layout) = (&step.frame.registers, step.frame.layout);
    let mut base = registers.get(rule.cfa_register);
    if layout.has_link_register() {
        // The frame pointer takes the place of an unknown stack pointer.
        base = base.or_else(|| registers.get(layout.frame_pointer));
    }
    base.is_some_and(|base| base.wrapping_sub(step.frame.stack_pointer()) < FRAME)
}
