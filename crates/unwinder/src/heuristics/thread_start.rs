//! Frames that have no caller.

use crate::code::patterns::{ends_thread, is_go_entry, is_new_thread};
use crate::module::code_mapping::CodeMapping;
use crate::step::Step;

/// Whether the frame is where its thread starts.
pub(super) fn is_thread_start(step: &mut Step<'_, '_>, place: &CodeMapping) -> bool {
    if !place.has_tables {
        return false;
    }
    let (frame, code) = (step.frame, &mut *step.code);
    let target = frame.program_counter();
    if frame.interrupted {
        return is_new_thread(code, place, target, &frame.registers)
            || is_go_entry(code, place, target);
    }
    let key = place.code_address(target);
    if let Some(known) = code.known.thread_starts.get(key) {
        return known;
    }
    let found = ends_thread(code, place, target) || is_go_entry(code, place, target);
    code.known.thread_starts.insert(key, found);
    found
}
