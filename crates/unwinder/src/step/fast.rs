//! The common step.

use crate::cache::rule_cache::CachedRule;
use crate::code::ProcessCode;
use crate::frame::{Evidence, Frame};
use crate::frames::Frames;
use crate::memory::stack::{Stack, Word};
use crate::rule::Rule;
use crate::step::lookup::cache_key;

/// Replaces `frame` by its caller, appends that to `frames` and returns the evidence for it, if the
/// rule is cached, the memory already read and the caller in known code further up. Otherwise does
/// nothing.
#[inline]
pub(crate) fn advance(
    frame: &mut Frame,
    code: &mut ProcessCode<'_>,
    stack: &mut Stack<'_>,
    frames: &mut Frames<'_>,
) -> Option<Evidence> {
    let layout = frame.layout;
    let address = frame.lookup_address();
    let place = code.recent(address)?;
    let key = cache_key(place.elf_address(address), frame.interrupted);
    let &CachedRule {
        rule: Rule::Compact(ref rule),
        signal_frame: false,
        starts_function: false,
    } = code.known.rules.get(place.module, key)?
    else {
        return None;
    };
    let (None, Some(words)) = (rule.cfa_through, rule.return_address) else {
        return None;
    };
    let base = frame.registers.get(rule.cfa_register)?;
    let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
    let at = |words: i16| cfa.wrapping_add_signed(i64::from(words) * 8);
    let target = stack.at_hand(at(words))?;
    let caller = (target.value & layout.address_mask).wrapping_sub(1);
    let next = code.recent(caller)?;
    let stack_pointer = frame.stack_pointer();
    if cfa <= stack_pointer {
        return None;
    }
    let edges = &code.known.edges;
    let call = || (place.code_address(address), next.code_address(caller));
    let edge = edges.wanted().then(call);
    let is_noted = edge.is_some_and(|(callee, caller)| edges.contain(callee, caller));
    // With a link register, CFI that does not fit would not be noticed otherwise.
    if (target.is_live || layout.has_link_register()) && !is_noted {
        return None;
    }
    let mut from_live = target.is_live;
    for (slot, words) in rule.saved() {
        let Some(&register) = layout.saved.get(slot) else {
            continue;
        };
        match stack.at_hand(at(words)) {
            Some(Word { value, is_live }) => {
                frame.registers.set(register, value);
                from_live |= is_live;
            }
            None if at(words) < stack_pointer => {}
            None => frame.registers.forget(register),
        }
    }
    frame.registers.set(layout.stack_pointer, cfa);
    let pc = caller.wrapping_add(1);
    frame.registers.set(layout.program_counter, pc);
    frame.interrupted = false;
    stack.reach(cfa);
    frames.push(caller);
    if let (Some((callee, caller)), false) = (edge, is_noted) {
        code.known.edges.add(callee, caller);
    }
    Some(Evidence {
        by_frame_pointer: false,
        from_live,
    })
}
