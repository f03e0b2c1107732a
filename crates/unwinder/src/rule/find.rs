//! Finding the rule for a frame: cached, from CFI, or from the code.

use crate::cache::rule_cache::CachedRule;
use crate::module::code_mapping::CodeMapping;
use crate::rule::{CompactRule, Rule};
use crate::unwinder::Unwinder;
use crate::walk::Walk;

impl Walk<'_> {
    /// The rule for the current frame, from the cache if possible.
    pub(crate) fn find_rule(&mut self, place: &CodeMapping) -> CachedRule {
        let unknown = CachedRule {
            rule: Rule::Unknown,
            signal_frame: false,
            starts_function: false,
        };
        if !place.has_tables {
            return unknown;
        }
        let address = place.elf_address(self.lookup_address());
        let key = cache_key(address, self.interrupted);
        if let Some(&rule) = self.unwinder.cache.get(place.module, key) {
            return rule;
        }
        let rule = self.make_rule(place, address).unwrap_or(unknown);
        self.unwinder.cache.insert(place.module, key, rule);
        rule
    }

    /// Caches a rule that worked for code without CFI.
    pub(crate) fn remember_guess(&mut self, place: &CodeMapping, rule: &CompactRule) {
        let address = place.elf_address(self.lookup_address());
        let rule = CachedRule {
            rule: Rule::Guess(*rule),
            signal_frame: false,
            starts_function: false,
        };
        let key = cache_key(address, self.interrupted);
        self.unwinder.cache.insert(place.module, key, rule);
    }

    #[cold]
    fn make_rule(&mut self, place: &CodeMapping, address: u64) -> Option<CachedRule> {
        if !self.interrupted && self.is_goroutine_start(place) {
            return Some(CachedRule {
                rule: Rule::ProgramEntry,
                signal_frame: false,
                starts_function: false,
            });
        }
        if !self.interrupted && self.is_stack_switch(place) {
            return Some(CachedRule {
                rule: Rule::StackSwitch,
                signal_frame: false,
                starts_function: false,
            });
        }
        if let Some(rule) = self.cfi_rule(place, address) {
            return Some(rule);
        }
        let next = address.wrapping_add(1);
        let called = self.interrupted
            || self.is_return_address(place, self.program_counter()) != Some(false);
        if !called {
            // The address was made up as the place to return to, such as the end of a coroutine
            // or a signal trampoline.
            if self.is_coroutine_end(place, self.program_counter()) {
                return Some(CachedRule {
                    rule: Rule::ProgramEntry,
                    signal_frame: false,
                    starts_function: true,
                });
            }
            if let Some(rule) = self.cfi_rule(place, next) {
                return Some(CachedRule {
                    starts_function: true,
                    ..rule
                });
            }
        }
        let target = if self.interrupted { address } else { next };
        let tables = self.unwinder.modules.get(place.module)?;
        let entry = tables.entry;
        let rule = self.analyze_code(place, target, entry);
        Some(CachedRule {
            rule,
            signal_frame: rule == Rule::SignalReturn,
            starts_function: rule == Rule::SignalReturn,
        })
    }

    fn cfi_rule(&mut self, place: &CodeMapping, address: u64) -> Option<CachedRule> {
        let Unwinder {
            modules,
            layout,
            context,
            ..
        } = &mut *self.unwinder;
        let tables = modules.get(place.module)?;
        let found = tables
            .eh_frame
            .as_ref()
            .and_then(|section| section.rule(address, context, layout))
            .or_else(|| tables.debug_frame(layout)?.rule(address, context, layout))?;
        Some(CachedRule {
            rule: found.value,
            signal_frame: found.signal_frame,
            starts_function: false,
        })
    }
}

/// The same address means different things for an interruption and for a call.
#[inline]
pub(crate) fn cache_key(address: u64, interrupted: bool) -> u64 {
    address << 1 | u64::from(interrupted)
}
