//! Steps from functions that do not return to their callers: `longjmp`, `setcontext`, exceptions.

use prof_model::StackEnd;

use crate::frame::Caller;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::step::Step;
use crate::step::check::{check, follows_call};

/// A step to where the code goes straight on to. What it still restores must be in the dump: it is
/// overwritten the next time.
pub(crate) fn exit(step: &mut Step<'_, '_>, place: &CodeMapping) -> Result<Caller, StackEnd> {
    let target = place.elf_address(step.frame.program_counter());
    let architecture = step.code.architecture();
    let stack = &*step.stack;
    let mut read = |address| {
        let word = stack.at_hand(address)?;
        (!word.is_live).then_some(word.value)
    };
    let registers = architecture.registers_at_exit(
        &mut step.code.reader(place.module),
        target,
        &step.frame.registers,
        &mut read,
    );
    let layout = step.frame.layout;
    let (registers, returns) =
        registers.ok_or_else(|| match step.frame.registers.get(layout.frame_pointer) {
            Some(_) => StackEnd::OtherStack,
            None => StackEnd::HiddenRegisters,
        })?;
    let is_end = registers.get(layout.program_counter) == Some(0);
    // Otherwise it is where the frame goes on: a landing pad, or the start of a coroutine.
    let caller = match returns && (is_end || follows_call(step, &registers, false)) {
        true => step.caller(registers),
        false => step.interrupted(registers),
    };
    check(step, None, &caller)?;
    Ok(caller)
}

/// A step to the handler of an exception that is landing. `context` is the place of its context,
/// from the frame pointer.
pub(crate) fn land(step: &mut Step<'_, '_>, context: i32) -> Option<Caller> {
    let layout = step.frame.layout;
    let frame_pointer = step.frame.registers.get(layout.frame_pointer)?;
    let context = frame_pointer.wrapping_add_signed(i64::from(context));
    let architecture = step.code.architecture();
    let read = &mut |address| step.read(address);
    let registers: Registers = architecture.landing_registers(context, read).ok()?;
    let is_above = registers.get(layout.stack_pointer)? > step.frame.stack_pointer();
    let target = registers.get(layout.program_counter)?;
    step.code.locate(target).filter(|_| is_above)?;
    Some(step.interrupted(registers))
}
