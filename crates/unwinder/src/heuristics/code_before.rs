//! Steps by the changes to the stack that the code before an address makes.

use prof_model::StackEnd;

use super::{is_outermost, stays_near};
use crate::cache::code_facts::Candidates;
use crate::frame::Caller;
use crate::module::code_mapping::CodeMapping;
use crate::rule::CompactRule;
use crate::step::Step;
use crate::step::apply::apply;
use crate::step::call_edges::check_call;
use crate::step::check::validate;

/// A step by what the function has done so far, for code that never returns; and its rule. An error
/// is the end of the stack.
pub(super) fn guess_by_code_before(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
) -> Option<Result<(Caller, CompactRule), StackEnd>> {
    let candidates = candidates(step, place);
    candidates.rules().iter().find_map(|rule| {
        if !stays_near(step, rule) {
            return None;
        }
        let registers = apply(step, rule).ok()?;
        if is_outermost(step, &registers) {
            return Some(Err(StackEnd::Root));
        }
        let caller = validate(step, registers)?;
        Some(Ok((caller, *rule)))
    })
}

/// The candidate rules for the frame by the code before it.
fn candidates(step: &mut Step<'_, '_>, place: &CodeMapping) -> Candidates {
    if !place.has_tables {
        return Candidates::default();
    }
    let key = place.code_address(step.frame.program_counter());
    if let Some(known) = step.code.known.candidates.get(key) {
        return known;
    }
    let mut found = Candidates::default();
    let architecture = step.code.architecture();
    let mut code = step.code.reader(key.module);
    architecture.analyze_from_entry(&mut code, key.address, &mut |rule| found.add(rule));
    drop(code);
    step.code.known.candidates.insert(key, found);
    found
}

/// A step from a function whose CFI is relative to the frame pointer, which is unknown: of a
/// blocked thread, only the stack pointer is known. The code changes that by the same amount at
/// each place, unless the function allocates a variable size.
pub(super) fn guess_by_prologue(step: &mut Step<'_, '_>, place: &CodeMapping) -> Option<Caller> {
    const FAR: u64 = 64 << 10;
    let frame = step.frame;
    if frame.registers.get(frame.layout.frame_pointer).is_some() {
        return None;
    }
    let target = place.elf_address(frame.program_counter());
    let function = step
        .code
        .function(place.code_address(frame.lookup_address()))?;
    if target.checked_sub(function.start)? > FAR {
        return None;
    }
    let architecture = step.code.architecture();
    let mut code = step.code.reader(place.module);
    let rule = architecture.follow_to(&mut code, function.start, target)?;
    drop(code);
    if !stays_near(step, &rule) {
        return None;
    }
    let registers = apply(step, &rule).ok()?;
    let caller = validate(step, registers)?;
    let caller_place = step.code.locate(caller.frame.lookup_address())?;
    check_call(step, place, &caller_place, &caller.frame).ok()?;
    Some(caller)
}
