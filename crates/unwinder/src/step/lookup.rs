//! Finds the rule for a frame: cached, from CFI, or from the code.

use crate::cache::rule_cache::CachedRule;
use crate::code::patterns::{
    calls_c_from_go, calls_vdso_from_go, ends_coroutine, ends_goroutine, is_return_address,
    starts_goroutine, switches_stack,
};
use crate::code::{KnownCode, ProcessCode};
use crate::frame::Frame;
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::rule::{CompactRule, Rule};

/// The rule for a frame, from the cache if possible.
pub(crate) fn find_rule(
    code: &mut ProcessCode<'_>,
    frame: &Frame,
    place: &CodeMapping,
) -> CachedRule {
    if !place.has_tables {
        return plain(Rule::Unknown);
    }
    let address = place.elf_address(frame.lookup_address());
    let key = cache_key(address, frame.interrupted);
    if let Some(&rule) = code.known.rules.get(place.module, key) {
        return rule;
    }
    let rule = create_rule(code, frame, place).unwrap_or(plain(Rule::Unknown));
    code.known.rules.insert(place.module, key, rule);
    rule
}

/// Caches a rule that worked for code without CFI.
pub(crate) fn remember_guess(
    code: &mut ProcessCode<'_>,
    frame: &Frame,
    place: &CodeMapping,
    rule: &CompactRule,
) {
    let address = place.elf_address(frame.lookup_address());
    let key = cache_key(address, frame.interrupted);
    let rule = plain(Rule::Guess(*rule));
    code.known.rules.insert(place.module, key, rule);
}

#[cold]
fn create_rule(
    code: &mut ProcessCode<'_>,
    frame: &Frame,
    place: &CodeMapping,
) -> Option<CachedRule> {
    let returned_to = frame.program_counter();
    if !frame.interrupted
        && let Some(rule) = go_rule(code, place, returned_to)
    {
        return Some(plain(rule));
    }
    let address = place.elf_address(frame.lookup_address());
    let tables = code.known.modules.get(place.module);
    if tables.is_some_and(|tables| tables.starts_greenlet(address)) {
        return Some(plain(Rule::ProgramEntry));
    }
    if let Some(rule) = cfi_rule(code, place, address) {
        // Signal handlers return to the first instruction of their trampoline. The C library's CFI
        // begins a byte before it, for those who look up return addresses minus 1; its symbol does
        // not.
        let at = place.code_address(frame.lookup_address());
        let is_signal_return = rule.signal_frame && !frame.interrupted;
        let entry = is_signal_return.then(|| code.function(at)).flatten();
        return Some(CachedRule {
            starts_function: entry.is_some_and(|entry| entry.start == address),
            rule: refined(code, frame, place, rule.rule),
            ..rule
        });
    }
    let next = address.wrapping_add(1);
    let called = frame.interrupted || is_return_address(code, place, returned_to) != Some(false);
    if !called {
        // The address was constructed as a return address, such as the end of a coroutine or a
        // signal trampoline.
        let rule = match ends_coroutine(code, place, returned_to) {
            true => Some(plain(Rule::ProgramEntry)),
            false => cfi_rule(code, place, next),
        };
        if let Some(rule) = rule {
            return Some(CachedRule {
                starts_function: true,
                ..rule
            });
        }
    }
    let target = if frame.interrupted { address } else { next };
    let entry = code.known.modules.get(place.module)?.entry;
    let architecture = code.architecture();
    let rule = architecture.analyze(&mut code.reader(place.module), target, entry);
    Some(CachedRule {
        rule,
        signal_frame: rule == Rule::SignalReturn,
        starts_function: rule == Rule::SignalReturn,
    })
}

/// The rule for a frame whose function may not return to its caller, as `longjmp`, or whose code is
/// known better than its CFI.
fn refined(code: &mut ProcessCode<'_>, frame: &Frame, place: &CodeMapping, by_cfi: Rule) -> Rule {
    let architecture = code.architecture();
    let target = place.elf_address(frame.program_counter());
    let at = place.code_address(frame.lookup_address());
    match by_cfi {
        Rule::Compact(rule) => {
            // Decoding others takes longer than finding CFI.
            if has_no_frame(code, &rule) {
                if starts_stack(code, at) {
                    return Rule::ProgramEntry;
                }
                let mut read = code.reader(place.module);
                if frame.interrupted && architecture.returns_elsewhere(&mut read, target, &rule) {
                    return Rule::Exit;
                }
            }
            rule_in_go(code, frame, at, target, rule).unwrap_or(by_cfi)
        }
        Rule::RestoresContext => restoring_rule(code, frame, at, target).unwrap_or(Rule::Evaluate),
        rule => rule,
    }
}

/// The rule for a frame whose function restores registers that were saved elsewhere, if its code
/// gives one. `target` is its program counter in the module.
fn restoring_rule(
    code: &mut ProcessCode<'_>,
    frame: &Frame,
    at: CodeAddress,
    target: u64,
) -> Option<Rule> {
    let function = code.function(at)?;
    let architecture = code.architecture();
    let mut read = code.reader(at.module);
    let start = function.start;
    if let Some(context) = architecture.landing(&mut read, function, target) {
        return Some(Rule::Landing(context));
    }
    if !frame.interrupted {
        return None;
    }
    match architecture.exit_has_stack(&mut read, target)? {
        true => Some(Rule::Exit),
        // It is still on the stack of its caller.
        false => (architecture.follow_to(&mut read, start, target)).map(Rule::Guess),
    }
}

/// Whether the function has put nothing on the stack.
fn has_no_frame(code: &ProcessCode<'_>, rule: &CompactRule) -> bool {
    let layout = code.known.layout;
    rule.cfa_register == layout.stack_pointer
        && i64::from(rule.cfa_offset) == -layout.return_slot.unwrap_or(0)
        && rule.saved_mask == 0
}

/// Whether the function at an address begins by taking its stack from a register, as glibc's
/// `__start_context`: it has no caller.
fn starts_stack(code: &mut ProcessCode<'_>, at: CodeAddress) -> bool {
    let Some(function) = code.function(at) else {
        return false;
    };
    let mut bytes = [0; 16];
    let count = code.reader(at.module)(function.start, &mut bytes);
    let architecture = code.architecture();
    architecture.starts_stack(bytes.get(..count).unwrap_or_default())
}

/// The rule for a frame of a Go program where its CFI does not lead to the caller.
fn go_rule(code: &mut ProcessCode<'_>, place: &CodeMapping, returned_to: u64) -> Option<Rule> {
    // Other programs have no such places, and reading code takes longer than finding CFI.
    code.is_go(place.module).then_some(())?;
    if starts_goroutine(code, place, returned_to) {
        return Some(Rule::ProgramEntry);
    }
    if ends_goroutine(code, place, returned_to) {
        return Some(Rule::GoroutineEnd);
    }
    if switches_stack(code, place, returned_to) || calls_vdso_from_go(code, place, returned_to) {
        return Some(Rule::StackSwitch);
    }
    if !calls_c_from_go(code, place, returned_to) {
        return None;
    }
    // If it was on the thread's own stack already, its code leads back.
    let architecture = code.architecture();
    let target = place.elf_address(returned_to);
    match architecture.analyze(&mut code.reader(place.module), target, 0) {
        Rule::Guess(rule) => Some(Rule::Guess(rule)),
        _ => Some(Rule::CallFromGo),
    }
}

/// The rule where Go's CFI is wrong: in its function for the start of a program with C, and in the
/// one that calls C.
fn rule_in_go(
    code: &mut ProcessCode<'_>,
    frame: &Frame,
    at: CodeAddress,
    target: u64,
    by_cfi: CompactRule,
) -> Option<Rule> {
    code.is_go(at.module).then_some(())?;
    let function = code.function(at)?;
    let mut bytes = [0; 256];
    let count = code.reader(at.module)(function.start, &mut bytes);
    let length = function.end.saturating_sub(function.start);
    let bytes = &bytes[..count.min(usize::try_from(length).ok()?)];
    let architecture = code.architecture();
    let done = target.saturating_sub(function.start);
    if let Some(room) = architecture.room_of_go_start(bytes, done) {
        let cfa_offset = by_cfi.cfa_offset.checked_add(room)?;
        return Some(Rule::Guess(CompactRule {
            cfa_offset,
            ..by_cfi
        }));
    }
    let calls_c = |end| (bytes.get(..end)).is_some_and(|it| architecture.calls_c_from_go(it));
    if !frame.interrupted || !(0..=bytes.len()).any(calls_c) {
        return None;
    }
    let mut read = code.reader(at.module);
    let is_own = |rule: CompactRule| rule.cfa_register == by_cfi.cfa_register;
    let is_on_goroutine = (architecture.follow_to(&mut read, function.start, target)).is_some()
        || architecture.epilogue(&mut read, target).is_some_and(is_own);
    (!is_on_goroutine).then_some(Rule::CallFromGo)
}

fn cfi_rule(code: &mut ProcessCode<'_>, place: &CodeMapping, address: u64) -> Option<CachedRule> {
    let KnownCode {
        modules,
        layout,
        cfi: context,
        ..
    } = &mut *code.known;
    let tables = modules.get(place.module)?;
    tables.read_entries(address);
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

/// A rule without other facts about the code.
fn plain(rule: Rule) -> CachedRule {
    CachedRule {
        rule,
        signal_frame: false,
        starts_function: false,
    }
}

/// The same address means different things for an interruption and for a call.
#[inline]
pub(crate) fn cache_key(address: u64, interrupted: bool) -> u64 {
    address << 1 | u64::from(interrupted)
}
