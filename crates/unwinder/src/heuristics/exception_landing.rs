//! The moment when a C++ exception lands.
//!
//! `_Unwind_RaiseException` and its like return into the handler instead of to their caller. To do
//! so, libgcc overwrites what they saved on entry by what the handler shall find, register by
//! register, and then leaves:
//!
//! ```text
//!   handler's function             its registers: installed now, or still those of the throw
//!     __cxa_throw                  finds a wrong frame pointer
//!       _Unwind_RaiseException     saved registers and return address: partly the handler's
//!         uw_install_context
//! ```
//! Until the stack pointer moves, two things are wrong for a walk: a frame between that needs its
//! frame pointer, and, once the return address is that of the handler, the stack pointer.

use crate::module::code_mapping::CodeMapping;
use crate::rule::{CompactRule, Rule};
use crate::walk::{Caller, Walk};

/// Bytes of stack between throw and handler, at most.
const FAR: u64 = 32 << 10;

impl Walk<'_> {
    /// A step from a function whose frame pointer cannot be right: by what it has done to the
    /// stack pointer since its start.
    pub(crate) fn without_frame_pointer(&mut self, place: &CodeMapping) -> Option<Caller> {
        let frame_pointer = self.unwinder.layout.frame_pointer;
        let by_it = match self.find_rule(place).rule {
            Rule::Compact(rule) => rule.cfa_register == frame_pointer,
            // libgcc's own functions save more registers than others do.
            Rule::Evaluate => true,
            _ => false,
        };
        if self.interrupted || !by_it {
            return None;
        }
        self.guess_from_entry(place).map(|(caller, _)| caller)
    }

    /// A step from a function that is returned to with the stack pointer of one further in.
    pub(crate) fn find_landing(&mut self, place: &CodeMapping) -> Option<Caller> {
        let rule = self.compact_rule(place)?;
        if self.interrupted {
            return self.find_call(place, &rule);
        }
        self.find_return(&rule)
            .or_else(|| self.find_call(place, &rule))
    }

    fn compact_rule(&mut self, place: &CodeMapping) -> Option<CompactRule> {
        match self.find_rule(place).rule {
            Rule::Compact(rule) => Some(rule),
            _ => None,
        }
    }

    /// Looks further up the stack for where the current function's own call put the address that
    /// it is returned to.
    fn find_return(&mut self, rule: &CompactRule) -> Option<Caller> {
        if rule.cfa_register != self.unwinder.layout.stack_pointer || rule.cfa_through.is_some() {
            return None;
        }
        let target = self.program_counter();
        for at in self.words_above() {
            if self.stack.read_dumped(at)? != target {
                continue;
            }
            let cfa = at.wrapping_add_signed(i64::from(rule.cfa_offset) + 8);
            let registers = self.apply_at(rule, cfa).ok()?;
            if let Some(caller) = self.validate(registers, false, true) {
                return Some(caller);
            }
        }
        None
    }

    /// Looks further up the stack for the return address of a call of the current function.
    fn find_call(&mut self, place: &CodeMapping, rule: &CompactRule) -> Option<Caller> {
        let layout = self.unwinder.layout;
        let address = place.elf_address(self.lookup_address());
        let tables = self.unwinder.modules.get(place.module)?;
        let start = tables.eh_frame.as_ref()?.function(address)?.start;
        for at in self.words_above() {
            let target = self.stack.read_dumped(at)?;
            let Some(caller) = target.checked_sub(1).and_then(|at| self.locate(at)) else {
                continue;
            };
            let mut bytes = [0; 8];
            let Some((before, _)) = self.code_around(&caller, target, 8, &mut bytes) else {
                continue;
            };
            let called = layout
                .architecture
                .call_target(before, caller.elf_address(target));
            if called == Some(start) && caller.module == place.module {
                let cfa = at.wrapping_add_signed(i64::from(rule.return_address?) * -8);
                let registers = self.apply_at(rule, cfa).ok()?;
                return self.validate(registers, false, true);
            }
        }
        None
    }

    /// The addresses of the stack's words from the stack pointer up.
    fn words_above(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.stack_pointer();
        let distances = (0..FAR).step_by(8);
        distances.map(move |distance| first.wrapping_add(distance))
    }
}
