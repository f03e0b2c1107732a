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
    let base = step.frame.registers.get(rule.cfa_register);
    let mut base = base.ok_or_else(|| without_register(step.frame))?;
    if let Some(offset) = rule.cfa_through {
        base = step.read(base.wrapping_add_signed(i64::from(offset)))?;
    }
    let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
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
