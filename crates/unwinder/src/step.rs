//! Getting a caller's registers by a rule.

use prof_model::StackEnd;

use crate::cache::rule_cache::CachedRule;
use crate::cfi::FrameState;
use crate::frames::Frames;
use crate::memory::stack::Stack;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::rule::find::cache_key;
use crate::rule::{CompactRule, Rule};
use crate::unwinder::Unwinder;
use crate::walk::Walk;

impl Walk<'_> {
    /// The usual step: a cached rule, the memory at hand, the caller in known code further up.
    /// Does nothing and returns `false` if anything is not so.
    #[inline]
    pub(crate) fn fast_step(&mut self, frames: &mut Frames<'_>) -> bool {
        let layout = self.unwinder.layout;
        let address = self.lookup_address();
        let holds = |place: &&Option<CodeMapping>, address| place.is_some_and(|p| p.holds(address));
        let Some(&Some(place)) = self.places.iter().find(|place| holds(place, address)) else {
            return false;
        };
        if let Some(callee) = self.callee.take() {
            self.note_call_of(callee, &place);
        }
        let key = cache_key(place.elf_address(address), self.interrupted);
        let Some(CachedRule {
            rule: Rule::Compact(rule),
            signal_frame: false,
            starts_function: false,
        }) = self.unwinder.cache.get(place.module, key)
        else {
            return false;
        };
        let (None, Some(words), Some(base)) = (
            rule.cfa_through,
            rule.return_address,
            self.registers.get(rule.cfa_register),
        ) else {
            return false;
        };
        let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
        let at = |words: i16| cfa.wrapping_add_signed(i64::from(words) * 8);
        let Some((target, mut live)) = self.stack.at_hand(at(words)) else {
            return false;
        };
        let caller = (target & layout.address_mask).wrapping_sub(1);
        let Some(Some(next)) = self.places.iter().find(|place| holds(place, caller)) else {
            return false;
        };
        let stack_pointer = self.stack_pointer();
        if cfa <= stack_pointer {
            return false;
        }
        let here = (place.module, place.elf_address(address));
        if live {
            let caller = (next.module, next.elf_address(caller));
            if !self.unwinder.edges.contain(here, caller) {
                return false;
            }
        } else if self.unwinder.edges.wanted {
            self.callee = Some(here);
        }
        for (slot, words) in rule.saved() {
            let Some(&register) = layout.saved.get(slot) else {
                continue;
            };
            let value = self.stack.at_hand(at(words));
            match value {
                Some((value, is_live)) => {
                    self.registers.set(register, value);
                    live |= is_live;
                }
                None if at(words) < stack_pointer => {}
                None => self.registers.forget(register),
            }
        }
        self.remote_read = self.remote_read.saturating_add(u16::from(live));
        self.registers.set(layout.stack_pointer, cfa);
        self.registers
            .set(layout.program_counter, caller.wrapping_add(1));
        self.interrupted = false;
        self.by_frame_pointer = false;
        self.stack.reach(cfa);
        frames.push(caller);
        true
    }

    /// The caller's registers by a compact rule.
    #[inline]
    pub(crate) fn apply(&mut self, rule: &CompactRule) -> Result<Registers, StackEnd> {
        let base = self.registers.get(rule.cfa_register);
        let mut base = base.ok_or(StackEnd::NoUnwindInfo)?;
        if let Some(offset) = rule.cfa_through {
            base = self
                .stack
                .read(base.wrapping_add_signed(i64::from(offset)))?;
        }
        self.apply_at(rule, base.wrapping_add_signed(i64::from(rule.cfa_offset)))
    }

    /// The caller's registers by a compact rule, given the CFA.
    pub(crate) fn apply_at(&mut self, rule: &CompactRule, cfa: u64) -> Result<Registers, StackEnd> {
        let layout = self.unwinder.layout;
        let at = |words: i16| cfa.wrapping_add_signed(i64::from(words) * 8);
        let target = match rule.return_address {
            Some(words) => self.stack.read(at(words))?,
            None => {
                let target = self.registers.get(layout.return_address);
                target.ok_or(StackEnd::NoUnwindInfo)?
            }
        };
        let mut caller = self.registers;
        for (slot, words) in rule.saved() {
            let Some(&register) = layout.saved.get(slot) else {
                continue;
            };
            match self.stack.read(at(words)) {
                Ok(value) => caller.set(register, value),
                // LLVM's CFI for epilogues leaves popped registers where they were saved, which
                // is below the stack pointer by then and not copied: they have their value back.
                Err(_) if at(words) < self.stack_pointer() => {}
                Err(_) => caller.forget(register),
            }
        }
        caller.set(layout.stack_pointer, cfa);
        caller.set(layout.program_counter, target & layout.address_mask);
        Ok(caller)
    }

    /// The caller's registers by everything that the CFI says.
    pub(crate) fn evaluate(
        &mut self,
        place: &CodeMapping,
        found: &CachedRule,
    ) -> Result<Registers, StackEnd> {
        let address = self.lookup_address() + u64::from(found.starts_function);
        let address = place.elf_address(address);
        let Unwinder {
            modules,
            layout,
            context,
            ..
        } = &mut *self.unwinder;
        let tables = modules.get(place.module).ok_or(StackEnd::NoUnwindInfo)?;
        let mut state = State {
            registers: &self.registers,
            stack: &mut self.stack,
        };
        [tables.eh_frame.as_ref(), tables.read_debug_frame()]
            .into_iter()
            .flatten()
            .find_map(|cfi| cfi.evaluate(address, context, layout, &self.registers, &mut state))
            .ok_or(StackEnd::NoUnwindInfo)?
            .value
    }
}

struct State<'s, 'w> {
    registers: &'s Registers,
    stack: &'s mut Stack<'w>,
}

impl FrameState for State<'_, '_> {
    fn register(&self, number: u16) -> Option<u64> {
        self.registers.get(u8::try_from(number).ok()?)
    }

    fn read(&mut self, address: u64) -> Result<u64, StackEnd> {
        self.stack.read(address)
    }
}
