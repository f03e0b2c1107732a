//! Steps for code that no CFI covers. Whatever is guessed must yield an address that follows a
//! call.

use prof_model::StackEnd;

use crate::cache::code_facts::{Candidates, CodeAddress};
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule};
use crate::unwinder::Unwinder;
use crate::walk::{Caller, Walk};

/// Frames larger than this have their own explanation.
const FRAME: u64 = 8 << 20;

impl Walk<'_> {
    /// Works out a rule from the code at `target` itself.
    pub(crate) fn analyze_code(&mut self, place: &CodeMapping, target: u64, entry: u64) -> Rule {
        let module = place.module;
        let modules = &mut self.unwinder.modules;
        let mut code = |address, buffer: &mut [u8]| modules.read_code(module, address, buffer);
        self.unwinder
            .layout
            .architecture
            .analyze(&mut code, target, entry)
    }

    /// Whether `target` follows a call, or is another place that stacks return to. `None`: the
    /// code is not to be had.
    pub(crate) fn is_return_address(&mut self, place: &CodeMapping, target: u64) -> Option<bool> {
        let mut bytes = [0; 32];
        let (before, after) = self.code_around(place, target, 8, &mut bytes)?;
        let architecture = self.unwinder.layout.architecture;
        Some(architecture.is_return_address(before, after))
    }

    /// A step from code without CFI.
    pub(crate) fn guess(&mut self, place: &CodeMapping, rule: &Rule) -> Result<Caller, StackEnd> {
        let mut unreadable = None;
        match rule {
            Rule::SignalReturn => {
                let registers = self.signal_return()?;
                return Ok(Caller {
                    registers,
                    interrupted: true,
                    by_frame_pointer: false,
                });
            }
            Rule::StackSwitch => {
                let caller = self.guess_frame_pointer(u64::MAX);
                let end = match self.stack.failure() {
                    Some(end) => end,
                    // What was read is no frame any more.
                    None if self.stack.went_live => StackEnd::Stale,
                    None => StackEnd::UnreadableMemory,
                };
                return caller.ok_or(end);
            }
            Rule::Guess(rule) if self.stays_near(rule) => match self.apply(rule) {
                Ok(registers) => {
                    if let Some(caller) = self.validate(registers, false, true) {
                        return Ok(caller);
                    }
                }
                Err(end) => unreadable = Some(end),
            },
            _ => {}
        }
        if self.is_entry(place) {
            return Err(StackEnd::Root);
        }
        if let Some(caller) = self.leave_trampoline(place) {
            return Ok(caller);
        }
        if let Some((caller, rule)) = self.guess_from_entry(place) {
            self.remember_guess(place, &rule);
            return Ok(caller);
        }
        // If nothing else works either, the guess was right and its memory is what is missing.
        self.without_cfi(place, StackEnd::NoUnwindInfo)
            .map_err(|end| match unreadable {
                Some(reason) if end == StackEnd::NoUnwindInfo => reason,
                _ => end,
            })
    }

    /// Whether a guessed rule leads to a place not far up the same stack.
    fn stays_near(&self, rule: &CompactRule) -> bool {
        let base = self.registers.get(rule.cfa_register);
        base.is_some_and(|base| base.wrapping_sub(self.stack_pointer()) < FRAME)
    }

    /// A step by what the function has done so far, for code that never returns, and its rule.
    pub(crate) fn guess_from_entry(
        &mut self,
        place: &CodeMapping,
    ) -> Option<(Caller, CompactRule)> {
        let candidates = self.candidates(place);
        candidates.rules().iter().find_map(|rule| {
            if !self.stays_near(rule) {
                return None;
            }
            let registers = self.apply(rule).ok()?;
            let caller = self.validate(registers, false, true)?;
            Some((caller, *rule))
        })
    }

    /// The rules that may hold for the current frame by the code in front of it.
    fn candidates(&mut self, place: &CodeMapping) -> Candidates {
        if !place.has_tables {
            return Candidates::default();
        }
        let key = self.code_place(place);
        if let Some(known) = self.unwinder.candidates.get(key) {
            return known;
        }
        let (module, target) = key;
        let mut found = Candidates::default();
        let modules = &mut self.unwinder.modules;
        let mut code = |address, buffer: &mut [u8]| modules.read_code(module, address, buffer);
        let architecture = self.unwinder.layout.architecture;
        architecture.analyze_from_entry(&mut code, target, &mut |rule| found.add(rule));
        self.unwinder.candidates.insert(key, found);
        found
    }

    fn code_place(&self, place: &CodeMapping) -> CodeAddress {
        (place.module, place.elf_address(self.program_counter()))
    }

    /// A step after what CFI says was not to be had or not to be believed; `otherwise` is what
    /// that amounts to if nothing else works either.
    pub(crate) fn without_cfi(
        &mut self,
        place: &CodeMapping,
        otherwise: StackEnd,
    ) -> Result<Caller, StackEnd> {
        if matches!(
            otherwise,
            StackEnd::Root | StackEnd::TruncatedDump | StackEnd::Stale | StackEnd::Loop
        ) {
            return Err(otherwise);
        }
        if self.is_entry(place) {
            return Err(StackEnd::Root);
        }
        if let Some(caller) = self.caller_from_prologue(place) {
            return Ok(caller);
        }
        if let Some(caller) = self.guess_leaf() {
            return Ok(caller);
        }
        if let Some(caller) = self.guess_frame_pointer(FRAME) {
            return Ok(caller);
        }
        if self.by_frame_pointer && otherwise == StackEnd::NoUnwindInfo {
            return Err(StackEnd::FramePointersEnded);
        }
        Err(otherwise)
    }

    /// A function whose CFI counts from the frame pointer, of which nothing is known: of a thread
    /// that sleeps, only the stack pointer is told. What the code has done to that one is the same
    /// at each place, unless the function takes room of variable size.
    fn caller_from_prologue(&mut self, place: &CodeMapping) -> Option<Caller> {
        const FAR: u64 = 64 << 10;
        let layout = self.unwinder.layout;
        if self.registers.get(layout.frame_pointer).is_some() {
            return None;
        }
        let target = place.elf_address(self.program_counter());
        let address = place.elf_address(self.lookup_address());
        let tables = self.unwinder.modules.get(place.module)?;
        let start = tables.eh_frame.as_ref()?.function(address)?.start;
        if target.checked_sub(start)? > FAR {
            return None;
        }
        let (module, modules) = (place.module, &mut self.unwinder.modules);
        let mut code = |address, buffer: &mut [u8]| modules.read_code(module, address, buffer);
        let rule = layout
            .architecture
            .follow_to(&mut code, start, target)
            .filter(|rule| self.stays_near(rule))?;
        let registers = self.apply(&rule).ok()?;
        self.validate(registers, false, true)
    }

    /// A sample outside of any known code: perhaps it just got there by a call.
    pub(crate) fn guess_outside_code(&mut self) -> Result<Caller, StackEnd> {
        self.guess_leaf().ok_or(StackEnd::NotCode)
    }

    /// An interrupted function that has not touched the stack.
    fn guess_leaf(&mut self) -> Option<Caller> {
        if !self.interrupted {
            return None;
        }
        let layout = self.unwinder.layout;
        let rule = CompactRule {
            cfa_register: layout.stack_pointer,
            cfa_offset: layout.return_slot.map_or(0, |offset| -offset as i32),
            return_address: layout.return_slot.map(|_| -1),
            ..CompactRule::default()
        };
        let registers = self.apply(&rule).ok()?;
        self.validate(registers, false, true)
    }

    /// The frame record that the frame pointer points to: the caller's, and the return address.
    /// It must lie less than `far` above the stack pointer.
    fn guess_frame_pointer(&mut self, far: u64) -> Option<Caller> {
        let layout = self.unwinder.layout;
        let pointer = self.registers.get(layout.frame_pointer)?;
        let distance = pointer.wrapping_sub(self.stack_pointer());
        if !pointer.is_multiple_of(8) || distance > far {
            return None;
        }
        let next = self.stack.read(pointer).ok()?;
        let target = self.stack.read(pointer.wrapping_add(8)).ok()?;
        // What the other registers held in the caller is not known.
        let mut registers = Registers::default();
        registers.set(layout.frame_pointer, next);
        registers.set(layout.stack_pointer, pointer.wrapping_add(16));
        registers.set(layout.program_counter, target & layout.address_mask);
        let has_chain = next == 0 || next > pointer;
        self.validate(registers, true, !has_chain)
    }

    /// A guessed caller, if its address is in code and follows a call. Where the code is not to
    /// be had, `strict` decides.
    pub(crate) fn validate(
        &mut self,
        registers: Registers,
        by_frame_pointer: bool,
        strict: bool,
    ) -> Option<Caller> {
        let layout = self.unwinder.layout;
        let target = registers.get(layout.program_counter)?;
        let (was, now) = (self.stack_pointer(), registers.get(layout.stack_pointer)?);
        let leaf = now == was && layout.return_slot.is_none() && self.interrupted;
        if now <= was && !leaf && !by_frame_pointer {
            return None;
        }
        let place = self.locate(target.checked_sub(1)?)?;
        let sane = self.is_return_address(&place, target).unwrap_or(!strict);
        sane.then_some(Caller {
            registers,
            interrupted: false,
            by_frame_pointer,
        })
    }

    /// Whether the current frame, whose caller is not to be found, is where its thread starts.
    fn is_entry(&mut self, place: &CodeMapping) -> bool {
        if !place.has_tables {
            return false;
        }
        if self.interrupted {
            return self.is_new_thread(place) || self.is_go_entry(place);
        }
        let key = self.code_place(place);
        if let Some(known) = self.unwinder.entries.get(key) {
            return known;
        }
        let found = self.ends_thread(place) || self.is_go_entry(place);
        self.unwinder.entries.insert(key, found);
        found
    }

    fn is_new_thread(&mut self, place: &CodeMapping) -> bool {
        const BEFORE: usize = 24;
        let mut bytes = [0; 64];
        let target = self.program_counter();
        let architecture = self.unwinder.layout.architecture;
        self.code_around(place, target, BEFORE, &mut bytes)
            .is_some_and(|(before, _)| architecture.is_new_thread(before, &self.registers))
    }

    fn ends_thread(&mut self, place: &CodeMapping) -> bool {
        let mut bytes = [0; 40];
        let target = self.program_counter();
        let architecture = self.unwinder.layout.architecture;
        self.code_around(place, target, 0, &mut bytes)
            .is_some_and(|(_, after)| architecture.ends_thread(after))
    }

    fn is_go_entry(&mut self, place: &CodeMapping) -> bool {
        let target = place.elf_address(self.program_counter());
        let module = place.module;
        let Unwinder {
            modules, layout, ..
        } = &mut *self.unwinder;
        let entry = modules.get(module).map_or(0, |tables| tables.entry);
        let mut code = |address, buffer: &mut [u8]| modules.read_code(module, address, buffer);
        entry != 0 && layout.architecture.is_go_entry(&mut code, target, entry)
    }

    /// Whether the current frame is where Go starts goroutines or schedules them.
    pub(crate) fn is_goroutine_start(&mut self, place: &CodeMapping) -> bool {
        let mut bytes = [0; 24];
        let target = self.program_counter();
        let architecture = self.unwinder.layout.architecture;
        self.code_around(place, target, 8, &mut bytes)
            .is_some_and(|(before, after)| architecture.starts_goroutine(before, after))
    }

    /// Whether the current frame's code made its call on another stack than its caller's.
    pub(crate) fn is_stack_switch(&mut self, place: &CodeMapping) -> bool {
        let mut bytes = [0; 16];
        let target = self.program_counter();
        let architecture = self.unwinder.layout.architecture;
        self.code_around(place, target, 16, &mut bytes)
            .is_some_and(|(before, _)| architecture.switches_stack(before))
    }

    /// Whether the code at `target`, which was never called, is known to end a coroutine.
    pub(crate) fn is_coroutine_end(&mut self, place: &CodeMapping, target: u64) -> bool {
        let mut bytes = [0; 40];
        let architecture = self.unwinder.layout.architecture;
        self.code_around(place, target, 0, &mut bytes)
            .is_some_and(|(_, after)| architecture.ends_coroutine(after))
    }

    /// The code before and from `target` on.
    pub(crate) fn code_around<'b>(
        &mut self,
        place: &CodeMapping,
        target: u64,
        before: usize,
        bytes: &'b mut [u8],
    ) -> Option<(&'b [u8], &'b [u8])> {
        if !place.has_tables {
            return None;
        }
        let first = place.elf_address(target).checked_sub(before as u64)?;
        let module = place.module;
        let count = self.unwinder.modules.read_code(module, first, bytes);
        bytes.get(..count)?.split_at_checked(before)
    }

    /// The registers that the kernel saved when it delivered a signal.
    fn signal_return(&mut self) -> Result<Registers, StackEnd> {
        let architecture = self.unwinder.layout.architecture;
        let at = self.stack_pointer();
        let registers =
            architecture.signal_registers(at, &mut |address| self.stack.read(address))?;
        let target = registers
            .get(self.unwinder.layout.program_counter)
            .ok_or(StackEnd::UnreadableMemory)?;
        self.locate(target).ok_or(StackEnd::NotCode)?;
        Ok(registers)
    }
}
