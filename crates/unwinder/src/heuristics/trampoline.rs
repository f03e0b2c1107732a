//! CPython's trampolines: with `-X perf`, each Python function gets one, in anonymous memory, so
//! that it has an address of its own in stacks. They have no unwind tables, and are all alike.

use crate::frame::Caller;
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::rule::CompactRule;
use crate::step::Step;
use crate::step::apply::apply;
use crate::step::check::validate;

/// A step from a trampoline, whose code is read from the live target.
pub(super) fn leave_trampoline(step: &mut Step<'_, '_>, place: &CodeMapping) -> Option<Caller> {
    if place.has_tables {
        return None;
    }
    let address = step.frame.program_counter();
    let at = CodeAddress {
        module: place.module,
        address,
    };
    let rule = match step.code.known.trampolines.get(at) {
        Some(rule) => rule,
        None if (step.code.known.no_trampolines).holds(step.code.target.process, address) => {
            return None;
        }
        None => trampoline_rule(step, address)?,
    };
    let registers = apply(step, &rule).ok()?;
    let caller = validate(step, registers)?;
    // The target may be gone at the next sample.
    step.code.known.trampolines.insert(at, rule);
    Some(caller)
}

fn trampoline_rule(step: &mut Step<'_, '_>, address: u64) -> Option<CompactRule> {
    const BEFORE: usize = 8;
    let mut bytes = [0; 24];
    let first = address.checked_sub(BEFORE as u64)?;
    let count = step.stack.read_elsewhere(first, &mut bytes);
    let (before, after) = bytes.get(..count)?.split_at_checked(BEFORE)?;
    let rule = step.code.architecture().trampoline(before, after);
    if rule.is_none() && count == bytes.len() {
        let process = step.code.target.process;
        step.code.known.no_trampolines.insert(process, address);
    }
    rule
}
