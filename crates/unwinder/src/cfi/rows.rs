//! From an FDE to the row for an address, and from the row to a rule or to registers.

use gimli::{
    BaseAddresses, CfaRule, FrameDescriptionEntry, Register, RegisterRule, UnwindSection,
    UnwindTableRow,
};
use prof_model::StackEnd;

use super::expression;
use super::{Bytes, FrameState};
use crate::arch::RegisterLayout;
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule, words};

pub(crate) type Row = UnwindTableRow<usize>;
pub(crate) type UnwindContext = gimli::UnwindContext<usize>;
pub(super) type Fde<'a> = FrameDescriptionEntry<Bytes<'a>>;

/// A value found in CFI, with other facts from its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    /// The code returns from a signal handler: its "caller" was interrupted, not calling.
    pub(crate) signal_frame: bool,
}

/// No real program is longer: this one describes a function with hundreds of thousands of pushes.
const PROGRAM_LIMIT: usize = 4 << 20;

/// The FDE at this offset of the section, if it covers `address`.
pub(super) fn fde_at<'a, S>(
    section: &S,
    bases: &BaseAddresses,
    offset: usize,
    address: u64,
) -> Option<Fde<'a>>
where
    S: UnwindSection<Bytes<'a>>,
{
    let fde = section
        .fde_from_offset(bases, S::Offset::from(offset), |section, bases, at| {
            section.cie_from_offset(bases, at)
        })
        .ok()?;
    (fde.contains(address) && fde.entry_len() <= PROGRAM_LIMIT).then_some(fde)
}

/// The row as a rule: compact if possible.
pub(super) fn compact(row: &Row, fde: &Fde<'_>, layout: &RegisterLayout) -> Rule {
    let return_address = row.register(Register(u16::from(layout.return_address)));
    if return_address == Some(RegisterRule::Undefined) {
        return Rule::Entry;
    }
    let Some(mut rule) = try_compact(row, layout) else {
        return match restores_context(row, layout) {
            true => Rule::RestoresContext,
            false => Rule::Evaluate,
        };
    };
    let by_go = fde.cie().data_alignment_factor() == GO_DATA_ALIGNMENT;
    if by_go && rule.saved_mask == 0 && rule.cfa_offset >= 16 {
        // Go's CFI omits that every function with a frame saves the frame pointer.
        let slot = layout.saved_slot(u16::from(layout.frame_pointer));
        slot.and_then(|slot| rule.save(slot, -16));
    }
    Rule::Compact(rule)
}

/// Whether the function sets the stack pointer, jumps to where a register says, or may end with
/// `__builtin_eh_return`: only those functions save a landing pad's arguments.
fn restores_context(row: &Row, layout: &RegisterLayout) -> bool {
    let rule = |register: u8| row.register(Register(u16::from(register)));
    let is_saved = |&register| matches!(rule(register), Some(RegisterRule::Offset(_)));
    rule(layout.stack_pointer).is_some()
        || matches!(rule(layout.return_address), Some(RegisterRule::Register(_)))
        || layout.landing_arguments.iter().all(is_saved)
}

/// Only Go's linker writes this factor on x86-64.
const GO_DATA_ALIGNMENT: i64 = -4;

fn try_compact(row: &Row, layout: &RegisterLayout) -> Option<CompactRule> {
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
        return None;
    };
    let mut rule = CompactRule {
        cfa_register: u8::try_from(register.0).ok()?,
        cfa_offset: i32::try_from(offset).ok()?,
        return_address: match layout.return_slot {
            Some(offset) => Some(words(offset)?),
            None => None,
        },
        ..CompactRule::default()
    };
    for (register, saved) in row.registers() {
        let is_return_address = register.0 == u16::from(layout.return_address);
        match saved {
            RegisterRule::Offset(offset) => {
                if is_return_address {
                    rule.return_address = Some(words(*offset)?);
                }
                match layout.saved_slot(register.0) {
                    Some(slot) => rule.save(slot, *offset)?,
                    None if is_return_address => {}
                    // Argument registers and vector registers: callers do not need them.
                    None if register.0 >= 17 && layout.return_slot.is_some() => {}
                    // With a link register, also of code that binds functions at their first call.
                    None if register.0 < 19 && layout.has_link_register() => {}
                    None if register.0 > 32 => {}
                    None => return None,
                }
            }
            RegisterRule::SameValue if !is_return_address || layout.return_slot.is_none() => {}
            // The state of pointer authentication.
            RegisterRule::Constant(_) if register.0 > 32 => {}
            RegisterRule::Undefined if register.0 > 32 => {}
            _ => return None,
        }
    }
    match rule.return_address {
        Some(above @ 0..) if layout.has_link_register() => above_return_address(rule, above),
        _ => Some(rule),
    }
}

/// The rule with the CFA above the return address. glibc before 2.37 says of its code that looks up
/// functions at their first call (`_dl_runtime_resolve`) that the stack pointer is the caller's;
/// but the procedure linkage table has stored two words, one of them the return address.
fn above_return_address(rule: CompactRule, above: i16) -> Option<CompactRule> {
    let raised = above.checked_add(1)?;
    let mut moved = CompactRule {
        cfa_offset: rule.cfa_offset.checked_add(8 * i32::from(raised))?,
        return_address: Some(-1),
        saved_mask: 0,
        saved: [0; CompactRule::SAVED],
        ..rule
    };
    for (slot, words) in rule.saved() {
        moved.save(slot, 8 * i64::from(words.checked_sub(raised)?))?;
    }
    Some(moved)
}

/// Whether a register is saved below the stack pointer.
fn is_below(rule: &RegisterRule<usize>, cfa: u64, stack_pointer: Option<u64>) -> bool {
    match (rule, stack_pointer) {
        (RegisterRule::Offset(offset), Some(at)) => cfa.wrapping_add_signed(*offset) < at,
        _ => false,
    }
}

/// Computes the caller's registers from any row.
pub(super) fn evaluate<'a, S>(
    row: &Row,
    section: &S,
    layout: &RegisterLayout,
    state: &mut impl FrameState,
) -> Result<Registers, StackEnd>
where
    S: UnwindSection<Bytes<'a>>,
{
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            state.register(register.0)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(program) => {
            let program = program.get(section).map_err(|_| StackEnd::NoUnwindInfo)?;
            expression::evaluate(program, None, state)?
        }
    };
    let registers = *state.registers();
    let mut caller = registers;
    caller.set(layout.stack_pointer, cfa);
    if let Some(offset) = layout.return_slot {
        let value = state.read(cfa.wrapping_add_signed(offset));
        match (
            value,
            row.register(Register(u16::from(layout.return_address))),
        ) {
            (Ok(value), _) => caller.set(layout.return_address, value),
            // Maybe the row has another place for it.
            (Err(_), Some(_)) => caller.forget(layout.return_address),
            (Err(end), None) => return Err(end),
        }
    }
    for (register, rule) in row.registers() {
        let Ok(number) = u8::try_from(register.0) else {
            continue;
        };
        let value = match rule {
            RegisterRule::SameValue => state.register(register.0),
            RegisterRule::Offset(offset) => state.read(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => state.register(other.0),
            RegisterRule::Expression(program) => program
                .get(section)
                .map_err(|_| StackEnd::NoUnwindInfo)
                .and_then(|program| expression::evaluate(program, Some(cfa), state))
                .and_then(|address| state.read(address)),
            RegisterRule::ValExpression(program) => program
                .get(section)
                .map_err(|_| StackEnd::NoUnwindInfo)
                .and_then(|program| expression::evaluate(program, Some(cfa), state)),
            _ => Err(StackEnd::NoUnwindInfo),
        };
        match value {
            Ok(value) => caller.set(number, value),
            Err(end) if number == layout.return_address => return Err(end),
            // Popped already, see `Walk::apply_at`.
            Err(_) if is_below(rule, cfa, registers.get(layout.stack_pointer)) => {}
            // It may never be needed.
            Err(_) => caller.forget(number),
        }
    }
    let target = caller
        .get(layout.return_address)
        .ok_or(StackEnd::UnreadableMemory)?;
    caller.set(layout.program_counter, target & layout.address_mask);
    Ok(caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_addresses_are_below_the_frame_address() {
        // As _dl_runtime_resolve of glibc 2.36 has it: x30 above the CFA, x0 below.
        let mut rule = CompactRule {
            cfa_register: 31,
            cfa_offset: 208,
            return_address: Some(1),
            ..CompactRule::default()
        };
        rule.save(11, 8).expect("a slot");
        rule.save(0, -16).expect("a slot");
        let moved = above_return_address(rule, 1).expect("a rule");
        assert_eq!((moved.cfa_offset, moved.return_address), (224, Some(-1)));
        let saved: Vec<_> = moved.saved().collect();
        assert_eq!(saved, [(0, -4), (11, -1)]);
    }
}
