//! The last guess: the frame record at the frame pointer.

use prof_model::StackEnd;

use super::is_outermost;
use crate::frame::Caller;
use crate::registers::Registers;
use crate::step::Step;
use crate::step::check::follows_call;

/// A step by the caller's frame pointer and the return address, which are where the frame pointer
/// points to: less than `far` above the stack pointer. `None`: there is no such record.
pub(super) fn follow_frame_pointer(
    step: &mut Step<'_, '_>,
    far: u64,
) -> Option<Result<Caller, StackEnd>> {
    let layout = step.frame.layout;
    let pointer = step.frame.registers.get(layout.frame_pointer)?;
    let distance = pointer.wrapping_sub(step.frame.stack_pointer());
    if !pointer.is_multiple_of(8) || distance > far {
        return None;
    }
    let next = step.read(pointer).ok()?;
    let target = step.read(pointer.wrapping_add(8)).ok()?;
    // The caller's values of the other registers are unknown.
    let mut registers = Registers::default();
    registers.set(layout.frame_pointer, next);
    registers.set(layout.stack_pointer, pointer.wrapping_add(16));
    if layout.has_link_register() {
        // The record may be at the bottom of a larger frame.
        registers.forget(layout.stack_pointer);
    }
    registers.set(layout.program_counter, target & layout.address_mask);
    if is_outermost(step, &registers) {
        return Some(Err(StackEnd::Root));
    }
    let has_chain = next == 0 || next > pointer;
    if !follows_call(step, &registers, has_chain) {
        return None;
    }
    let mut caller = step.caller(registers);
    caller.evidence.by_frame_pointer = true;
    Some(Ok(caller))
}
