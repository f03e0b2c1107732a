//! The chain of frame pointers that the kernel followed when it took the sample: followed if no
//! caller was found, and before live memory where Go has moved to another stack.
//!
//! It skips code without frame pointers, but its reads are of the very moment, and not limited to
//! the dump. Go moves from a goroutine's stack to a larger one to allocate memory, and keeps frame
//! pointers: a millisecond later the goroutine has moved on.

use std::ops::RangeInclusive;

use crate::code::patterns::is_return_address;
use crate::rule::Rule;
use crate::step::Step;
use crate::step::lookup::find_rule;

/// The kernel's own limit is 127 frames, unless root has changed it.
const LONGEST: usize = 2048;

/// The indices of the frame's callers in the kernel's chain, if it leads to an entry. `depth`
/// frames are known, including this one. Go keeps frame pointers: the chain is right from the
/// innermost function on.
pub(crate) fn rest_of_chain(
    step: &mut Step<'_, '_>,
    depth: usize,
    is_leaf_of_go: bool,
) -> Option<RangeInclusive<usize>> {
    let first = match is_leaf_of_go {
        // It has no frame: its caller is not in the chain.
        true => 1,
        false => join(step, depth)?,
    };
    Some(first..=end(step, first)?)
}

/// The index of the frame's caller; unknown in recursion.
pub(super) fn join(step: &Step<'_, '_>, depth: usize) -> Option<usize> {
    let here = step.frame.program_counter();
    let mut found = (1..LONGEST)
        .map_while(|index| Some((index, step.stack.kernel_callchain(index)?)))
        .filter(|&(_, address)| address == here)
        .map(|(index, _)| index + 1);
    match (found.next(), found.next()) {
        (Some(next), None) if !step.frame.interrupted => Some(next),
        // The innermost function has no frame: its caller is not in the chain.
        (None, None) if depth == 2 && !step.frame.interrupted => Some(1),
        _ => None,
    }
}

/// The first entry of a thread or coroutine in the chain, if all addresses up to it are callers.
fn end(step: &mut Step<'_, '_>, first: usize) -> Option<usize> {
    let mut frame = *step.frame;
    frame.interrupted = false;
    for index in first..LONGEST {
        let address = step.stack.kernel_callchain(index)?;
        let place = step.code.locate(address.wrapping_sub(1))?;
        let register = frame.layout.program_counter;
        frame.registers.set(register, address);
        let rule = find_rule(step.code, &frame, &place).rule;
        if matches!(rule, Rule::Entry | Rule::ProgramEntry | Rule::GoroutineEnd) {
            return Some(index);
        }
        is_return_address(step.code, &place, address)?.then_some(())?;
    }
    None
}
