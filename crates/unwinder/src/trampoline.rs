//! CPython's trampolines: with `-X perf`, each Python function gets one, in anonymous memory, so that it
//! has an address of its own in stacks. They have no unwind tables, and are all alike.

use crate::module::code_mapping::CodeMapping;
use crate::rule::CompactRule;
use crate::walk::{Caller, Walk};

impl Walk<'_> {
    /// A step from a trampoline, whose code is read from the live target.
    pub(crate) fn leave_trampoline(&mut self, place: &CodeMapping) -> Option<Caller> {
        if place.has_tables {
            return None;
        }
        let address = self.program_counter();
        let at = (place.module, address);
        let rule = match self.unwinder.trampolines.get(at) {
            Some(rule) => rule,
            None => self.trampoline_rule(address)?,
        };
        let registers = self.apply(&rule).ok()?;
        let caller = self.validate(registers, false, true)?;
        // The target may be gone at the next sample.
        self.unwinder.trampolines.insert(at, rule);
        Some(caller)
    }

    fn trampoline_rule(&mut self, address: u64) -> Option<CompactRule> {
        const BEFORE: usize = 8;
        let mut bytes = [0; 24];
        let first = address.checked_sub(BEFORE as u64)?;
        let count = self.stack.read_elsewhere(first, &mut bytes);
        let (before, after) = bytes.get(..count)?.split_at_checked(BEFORE)?;
        let architecture = self.unwinder.layout.architecture;
        architecture.trampoline(before, after)
    }
}
