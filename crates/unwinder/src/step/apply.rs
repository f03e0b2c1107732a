//! Computes a caller's registers by a rule.

use prof_model::StackEnd;

use crate::cache::rule_cache::CachedRule;
use crate::cfi::FrameState;
use crate::code::KnownCode;
use crate::frame::Frame;
use crate::memory::stack::Stack;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::rule::CompactRule;
use crate::step::Step;

/// The caller's registers by a compact rule.
pub(crate) fn apply(step: &mut Step<'_, '_>, rule: &CompactRule) -> Result<Registers, StackEnd> {
    let cfa = canonical_frame_address(step, rule)?;
    let layout = step.frame.layout;
    let at = |words: i16| cfa.wrapping_add_signed(i64::from(words) * 8);
    let target = match rule.return_address {
        Some(words) => step.read(at(words))?,
        None => {
            let target = step.frame.registers.get(layout.return_address);
            target.ok_or_else(|| without_register(step.frame))?
        }
    };
    let mut caller = step.frame.registers;
    for (slot, words) in rule.saved() {
        let Some(&register) = layout.saved.get(slot) else {
            continue;
        };
        match step.read(at(words)) {
            Ok(value) => caller.set(register, value),
            // LLVM's CFI for epilogues says that popped registers are still where they were saved,
            // which is then below the stack pointer and not in the dump: they already have their
            // values back.
            Err(_) if at(words) < step.frame.stack_pointer() => {}
            Err(_) => caller.forget(register),
        }
    }
    caller.set(layout.stack_pointer, cfa);
    caller.set(layout.program_counter, target & layout.address_mask);
    Ok(caller)
}

fn canonical_frame_address(step: &mut Step<'_, '_>, rule: &CompactRule) -> Result<u64, StackEnd> {
    let base = step.frame.registers.get(rule.cfa_register);
    let Some(mut base) = base else {
        return above_record(step, rule).ok_or_else(|| without_register(step.frame));
    };
    if let Some(offset) = rule.cfa_through {
        base = step.read(base.wrapping_add_signed(i64::from(offset)))?;
    }
    Ok(base.wrapping_add_signed(i64::from(rule.cfa_offset)))
}

/// The same by the frame pointer, if the stack pointer is unknown: the caller of code of which only
/// the frame record is known. The rule tells how far below it the function stores its own record.
fn above_record(step: &mut Step<'_, '_>, rule: &CompactRule) -> Option<u64> {
    let layout = step.frame.layout;
    let pointer = step.frame.registers.get(layout.frame_pointer)?;
    let slot = layout.saved_slot(u16::from(layout.frame_pointer))?;
    let (_, below) = rule.saved().find(|(saved, _)| *saved == slot)?;
    let is_record = layout.has_link_register()
        && rule.cfa_register == layout.stack_pointer
        && rule.return_address == Some(below.checked_add(1)?);
    (is_record && sets_frame_pointer(step)?)
        .then(|| pointer.wrapping_add_signed(-8 * i64::from(below)))
}

/// Whether the frame pointer of the frame's function leads to its own record; `None` if that is
/// unknown.
fn sets_frame_pointer(step: &mut Step<'_, '_>) -> Option<bool> {
    let address = step.frame.program_counter();
    let place = step.code.locate(step.frame.lookup_address())?;
    let at = place.code_address(step.frame.lookup_address());
    let start = step.code.function(at).map(|function| function.start);
    let architecture = step.code.architecture();
    let mut read = step.code.reader(place.module);
    architecture.sets_frame_pointer(&mut read, start, place.elf_address(address))
}

/// The end of a stack whose rule needs a register that is not known.
pub(crate) fn without_register(frame: &Frame) -> StackEnd {
    match frame.registers.get(frame.layout.frame_pointer) {
        Some(_) => StackEnd::NoUnwindInfo,
        None => StackEnd::HiddenRegisters,
    }
}

/// The caller's registers by a complete evaluation of the CFI.
pub(crate) fn evaluate(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    found: &CachedRule,
) -> Result<Registers, StackEnd> {
    let frame = step.frame;
    let address = frame.lookup_address() + u64::from(found.starts_function);
    let address = place.elf_address(address);
    let KnownCode {
        modules,
        layout,
        cfi: context,
        ..
    } = &mut *step.code.known;
    let tables = modules.get(place.module).ok_or(StackEnd::NoUnwindInfo)?;
    tables.read_entries(address);
    let mut state = State {
        frame,
        stack: step.stack,
        from_live: &mut step.from_live,
    };
    [tables.eh_frame.as_ref(), tables.read_debug_frame()]
        .into_iter()
        .flatten()
        .find_map(|cfi| cfi.evaluate(address, context, layout, &mut state))
        .ok_or(StackEnd::NoUnwindInfo)?
        .value
}

struct State<'s, 'w> {
    frame: &'s Frame,
    stack: &'s mut Stack<'w>,
    from_live: &'s mut bool,
}

impl FrameState for State<'_, '_> {
    fn registers(&self) -> &Registers {
        &self.frame.registers
    }

    fn without_register(&self) -> StackEnd {
        without_register(self.frame)
    }

    fn read(&mut self, address: u64) -> Result<u64, StackEnd> {
        let word = self.stack.read(address)?;
        *self.from_live |= word.is_live;
        Ok(word.value)
    }
}
