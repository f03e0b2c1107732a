//! One walk from a sample's registers to the entry of its thread.

use prof_model::{AbsoluteAddress, ModuleId, ModuleKind, StackEnd};

use crate::cache::CachedRule;
use crate::cfi::FrameState;
use crate::frames::Frames;
use crate::module::elf_address;
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule};
use crate::stack::Stack;
use crate::target::Target;
use crate::unwinder::Unwinder;

/// No stack is deeper: 1 GB of frames of 1 KB. Keeps hostile stacks from taking forever.
const STEPS: u32 = 1 << 20;
/// How often a walk may go to lower addresses (another stack) before it counts as a loop.
const DESCENTS: u32 = 32;
/// Mappings remembered during a walk.
const PLACES: usize = 4;

/// The state of a walk: a frame's registers, and what is known about them.
pub(crate) struct Walk<'w> {
    pub(crate) unwinder: &'w mut Unwinder,
    target: &'w Target<'w>,
    pub(crate) registers: Registers,
    pub(crate) stack: Stack<'w>,
    /// The program counter is where the frame was interrupted, not where a call returns to.
    pub(crate) interrupted: bool,
    /// The frame was found by following a frame pointer.
    pub(crate) by_frame_pointer: bool,
    descents: u32,
    read_back: u16,
    places: [Option<Place>; PLACES],
    next_place: usize,
}

/// A mapping of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u64,
    end: u64,
    pub(crate) module: ModuleId,
    /// What to add (wrapping) to an address of the process to get that of the module's tables.
    bias: u64,
    /// Whether the module's file could be read.
    pub(crate) has_tables: bool,
}

impl Place {
    /// An address in this mapping as the module's tables have it; without tables, as is.
    #[inline]
    pub(crate) fn elf_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    #[inline]
    fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// A step up the stack that is not yet believed.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) registers: Registers,
    /// The caller was interrupted by a signal.
    pub(crate) interrupted: bool,
    pub(crate) by_frame_pointer: bool,
}

impl<'w> Walk<'w> {
    pub(crate) fn new(
        unwinder: &'w mut Unwinder,
        target: &'w Target<'w>,
        registers: Registers,
        stack: Stack<'w>,
    ) -> Self {
        Self {
            unwinder,
            target,
            registers,
            stack,
            interrupted: true,
            by_frame_pointer: false,
            descents: 0,
            read_back: 0,
            places: [None; PLACES],
            next_place: 0,
        }
    }

    /// Walks to the end; returns why it ended, and how many frames came from live memory.
    pub(crate) fn run(mut self, frames: &mut Frames<'_>) -> (StackEnd, u16) {
        if self.is_between_programs() {
            return (StackEnd::NoUserState, 0);
        }
        frames.push(self.program_counter());
        let nothing_copied = self.stack.is_empty();
        for step in 0..STEPS {
            if self.fast_step(frames) {
                continue;
            }
            match self.step(frames) {
                Err(StackEnd::UnreadableMemory) if step == 0 && nothing_copied => {
                    // The kernel had no stack to copy: the process is in exec or exiting.
                    return (StackEnd::NoUserState, 0);
                }
                Ok(caller) => self.enter(caller, frames),
                Err(end) => return (end, self.read_back),
            }
        }
        (StackEnd::FrameLimit, self.read_back)
    }

    /// The usual step: a cached rule, everything in the dump, the caller in known code further up.
    /// Does nothing and returns `false` if anything is not so.
    #[inline]
    fn fast_step(&mut self, frames: &mut Frames<'_>) -> bool {
        let layout = self.unwinder.layout;
        let address = self.lookup_address();
        let holds = |place: &&Option<Place>, address| place.is_some_and(|p| p.holds(address));
        let Some(Some(place)) = self.places.iter().find(|place| holds(place, address)) else {
            return false;
        };
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
        let Some(target) = self.stack.read_dumped(at(words)) else {
            return false;
        };
        let caller = (target & layout.address_mask).wrapping_sub(1);
        let known = self.places.iter().any(|place| holds(&place, caller));
        let stack_pointer = self.stack_pointer();
        if !known || cfa <= stack_pointer {
            return false;
        }
        for (slot, words) in rule.saved() {
            let Some(&register) = layout.saved.get(slot) else {
                continue;
            };
            match self.stack.read_dumped(at(words)) {
                Some(value) => self.registers.set(register, value),
                None if at(words) < stack_pointer => {}
                None => self.registers.forget(register),
            }
        }
        self.registers.set(layout.stack_pointer, cfa);
        self.registers
            .set(layout.program_counter, caller.wrapping_add(1));
        self.interrupted = false;
        self.by_frame_pointer = false;
        self.stack.reach(cfa);
        frames.push(caller);
        true
    }

    /// Whether the sample hit `exec` in the kernel: the registers are still those of a program
    /// that is gone or was never known, and say nothing about the new one.
    fn is_between_programs(&mut self) -> bool {
        let mut mappings = self.target.process.space().iter();
        let knows_code = mappings.any(|mapping| mapping.executable);
        let at = self.program_counter();
        !knows_code || (self.stack.is_empty() && self.locate(at).is_none())
    }

    pub(crate) fn program_counter(&self) -> u64 {
        let register = self.unwinder.layout.program_counter;
        self.registers.get(register).unwrap_or(0)
    }

    pub(crate) fn stack_pointer(&self) -> u64 {
        let register = self.unwinder.layout.stack_pointer;
        self.registers.get(register).unwrap_or(0)
    }

    /// The address to look the frame's code up by.
    pub(crate) fn lookup_address(&self) -> u64 {
        lookup_address(self.program_counter(), self.interrupted)
    }

    /// Makes the caller the current frame.
    fn enter(&mut self, caller: Caller, frames: &mut Frames<'_>) {
        let (was, was_interrupted) = (self.stack_pointer(), self.interrupted);
        self.registers = caller.registers;
        self.interrupted = caller.interrupted;
        self.by_frame_pointer = caller.by_frame_pointer;
        let now = self.stack_pointer();
        self.stack.reach(now);
        if now < was || (now == was && !was_interrupted) {
            self.descents += 1;
        }
        if std::mem::take(&mut self.stack.went_live) {
            self.read_back = self.read_back.saturating_add(1);
        }
        frames.push(self.lookup_address());
    }

    /// Finds the caller of the current frame.
    fn step(&mut self, frames: &mut Frames<'_>) -> Result<Caller, StackEnd> {
        if self.descents > DESCENTS {
            return Err(StackEnd::Loop);
        }
        let Some(place) = self.locate(self.lookup_address()) else {
            // Only a sample's own address can be outside of any code: a call through a wild
            // pointer, or code whose mapping is not known.
            return self.guess_outside_code();
        };
        let found = self.find_rule(&place);
        if found.starts_function {
            frames.replace_last(self.program_counter());
        }
        let caller = match found.rule {
            Rule::Compact(rule) => self.apply(&rule),
            Rule::Evaluate => self.evaluate(&place, &found),
            Rule::Entry | Rule::ProgramEntry => return Err(StackEnd::Root),
            Rule::Guess(_) | Rule::SignalReturn | Rule::StackSwitch | Rule::Unknown => {
                return self.guess(&place, &found.rule);
            }
        };
        let caller = caller.map(|registers| Caller {
            registers,
            interrupted: found.signal_frame,
            by_frame_pointer: false,
        });
        match caller.and_then(|caller| self.check(caller)) {
            Ok(caller) => Ok(caller),
            Err(end) => self.without_cfi(&place, end),
        }
    }

    /// Whether a caller that CFI yields can be.
    fn check(&mut self, caller: Caller) -> Result<Caller, StackEnd> {
        let layout = self.unwinder.layout;
        let target = caller.registers.get(layout.program_counter);
        let target = target.ok_or(StackEnd::UnreadableMemory)?;
        if target == 0 {
            // What looks like the end may be a stack that was given back in the meantime: zeros
            // all over, and no seam tells zeros that were copied from these.
            let emptied = self.stack.went_live && self.stack.is_seam_blank();
            return Err(if emptied {
                StackEnd::Stale
            } else {
                StackEnd::Root
            });
        }
        let place = self
            .locate(lookup_address(target, caller.interrupted))
            .ok_or(StackEnd::NotCode)?;
        let stands_still = caller.registers.get(layout.stack_pointer) == Some(self.stack_pointer())
            && target == self.program_counter();
        if stands_still {
            return Err(StackEnd::Loop);
        }
        if self.stack.went_live
            && !caller.interrupted
            && self.is_return_address(&place, target) == Some(false)
        {
            return Err(StackEnd::Stale);
        }
        Ok(caller)
    }

    /// The mapping of code at `address`.
    pub(crate) fn locate(&mut self, address: u64) -> Option<Place> {
        let known = |place: &&Option<Place>| place.is_some_and(|place| place.holds(address));
        if let Some(place) = self.places.iter().find(known) {
            return *place;
        }
        let mapping = self.target.process.space().find(AbsoluteAddress(address))?;
        if !mapping.executable {
            return None;
        }
        let Unwinder {
            modules, layout, ..
        } = &mut *self.unwinder;
        let Target {
            pid,
            modules: table,
            ..
        } = *self.target;
        let space = self.target.process.space();
        let bias = modules
            .load(pid, table, mapping, layout)
            .and_then(|tables| match table[mapping.module].kind {
                // Mapped as a whole from its first byte, whatever offset the kernel reports.
                ModuleKind::Vdso => Some(mapping.file_offset.0.wrapping_neg()),
                _ => tables.address_bias(mapping, space),
            });
        let place = Place {
            start: mapping.start.0,
            end: mapping.end.0,
            module: mapping.module,
            bias: bias.map_or(0, |bias| elf_address(mapping, bias, 0)),
            has_tables: bias.is_some(),
        };
        if let Some(slot) = self.places.get_mut(self.next_place) {
            *slot = Some(place);
        }
        self.next_place = (self.next_place + 1) % PLACES;
        Some(place)
    }

    /// The rule for the current frame, from the cache if possible.
    pub(crate) fn find_rule(&mut self, place: &Place) -> CachedRule {
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
    pub(crate) fn remember_guess(&mut self, place: &Place, rule: &CompactRule) {
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
    fn make_rule(&mut self, place: &Place, address: u64) -> Option<CachedRule> {
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
            if self.is_coroutine_end(place) {
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

    fn cfi_rule(&mut self, place: &Place, address: u64) -> Option<CachedRule> {
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
            None => self
                .registers
                .get(layout.return_address)
                .ok_or(StackEnd::NoUnwindInfo)?,
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
    fn evaluate(&mut self, place: &Place, found: &CachedRule) -> Result<Registers, StackEnd> {
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

/// The same address means different things for an interruption and for a call.
#[inline]
fn cache_key(address: u64, interrupted: bool) -> u64 {
    address << 1 | u64::from(interrupted)
}

#[inline]
fn lookup_address(program_counter: u64, interrupted: bool) -> u64 {
    program_counter.wrapping_sub(u64::from(!interrupted))
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
