//! Steps from run-time code that no runtime describes, by an analysis of its code in the live
//! target: where calls leave the return address in a register, a frame pointer that leads somewhere
//! proves nothing.

use prof_model::StackEnd;

use super::frame_pointer::follow_frame_pointer;
use super::{FRAME, is_outermost, stays_near};
use crate::frame::Caller;
use crate::module::code_mapping::CodeMapping;
use crate::rule::Rule;
use crate::step::Step;
use crate::step::apply::apply;
use crate::step::check::validate;

pub(super) fn leave_run_time_code(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
) -> Option<Result<Caller, StackEnd>> {
    if place.has_tables || !step.frame.layout.has_link_register() {
        return None;
    }
    let architecture = step.code.architecture();
    let at = step.frame.program_counter();
    let mut read = |address, buffer: &mut [u8]| step.stack.read_elsewhere(address, buffer);
    let found = architecture.analyze(&mut read, at, 0);
    let mut rules = [None; 2];
    match found {
        Rule::FrameRecord => return follow_frame_pointer(step, FRAME),
        Rule::Guess(rule) => rules[0] = Some(rule),
        _ => {
            let mut found = rules.iter_mut();
            architecture.analyze_from_entry(&mut read, at, &mut |rule| match found.next() {
                Some(slot) => {
                    *slot = Some(rule);
                    false
                }
                None => true,
            });
        }
    }
    rules.into_iter().flatten().find_map(|rule| {
        if !stays_near(step, &rule) {
            return None;
        }
        let registers = apply(step, &rule).ok()?;
        if is_outermost(step, &registers) {
            return Some(Err(StackEnd::Root));
        }
        validate(step, registers).map(Ok)
    })
}
