//! Patterns in the code around an address.

use crate::code::ProcessCode;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;

/// Whether `target` follows a call, or is another address that stacks return to. `None`: the code
/// is unavailable.
pub(crate) fn is_return_address(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    target: u64,
) -> Option<bool> {
    let mut bytes = [0; 32];
    let (before, after) = code.around(place, target, 8, &mut bytes)?;
    Some(code.architecture().is_return_address(before, after))
}

/// Whether a thread that was interrupted at `target` has just been created by `clone`.
pub(crate) fn is_new_thread(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    target: u64,
    registers: &Registers,
) -> bool {
    const BEFORE: usize = 24;
    let mut bytes = [0; 64];
    code.around(place, target, BEFORE, &mut bytes)
        .is_some_and(|(before, _)| code.architecture().is_new_thread(before, registers))
}

/// Whether code that returns to `target` only ends its thread.
pub(crate) fn ends_thread(code: &mut ProcessCode<'_>, place: &CodeMapping, target: u64) -> bool {
    let mut bytes = [0; 40];
    code.around(place, target, 0, &mut bytes)
        .is_some_and(|(_, after)| code.architecture().ends_thread(after))
}

/// Whether `target` is in the start code of a Go program.
pub(crate) fn is_go_entry(code: &mut ProcessCode<'_>, place: &CodeMapping, target: u64) -> bool {
    let entry = code.entry(place.module);
    let architecture = code.architecture();
    let mut read = code.reader(place.module);
    entry != 0 && architecture.is_go_entry(&mut read, place.elf_address(target), entry)
}

/// Whether `target` is where Go starts goroutines or schedules them.
pub(crate) fn starts_goroutine(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    target: u64,
) -> bool {
    let mut bytes = [0; 24];
    code.around(place, target, 8, &mut bytes)
        .is_some_and(|(before, after)| code.architecture().starts_goroutine(before, after))
}

/// Whether `target` is the return address of the call that ends a goroutine.
pub(crate) fn ends_goroutine(code: &mut ProcessCode<'_>, place: &CodeMapping, target: u64) -> bool {
    let mut bytes = [0; 16];
    code.around(place, target, 8, &mut bytes)
        .is_some_and(|(before, after)| code.architecture().ends_goroutine(before, after))
}

/// Whether the code before `target` made its call on another stack than its caller's.
pub(crate) fn switches_stack(code: &mut ProcessCode<'_>, place: &CodeMapping, target: u64) -> bool {
    let mut bytes = [0; 16];
    code.around(place, target, 16, &mut bytes)
        .is_some_and(|(before, _)| code.architecture().switches_stack(before))
}

/// Whether the code around `target` is Go's, and has called the vDSO on another stack than its
/// caller's.
pub(crate) fn calls_vdso_from_go(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    target: u64,
) -> bool {
    const BEFORE: usize = 72;
    let mut bytes = [0; BEFORE + 56];
    code.around(place, target, BEFORE, &mut bytes)
        .is_some_and(|(before, after)| code.architecture().calls_vdso_from_go(before, after))
}

/// Whether the code before `target` is Go's, and has called C on the thread's own stack.
pub(crate) fn calls_c_from_go(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    target: u64,
) -> bool {
    let mut bytes = [0; 16];
    code.around(place, target, 16, &mut bytes)
        .is_some_and(|(before, _)| code.architecture().calls_c_from_go(before))
}

/// Whether the code at `target`, which was never called, is known to end a coroutine.
pub(crate) fn ends_coroutine(code: &mut ProcessCode<'_>, place: &CodeMapping, target: u64) -> bool {
    let mut bytes = [0; 40];
    code.around(place, target, 0, &mut bytes)
        .is_some_and(|(_, after)| code.architecture().ends_coroutine(after))
}
