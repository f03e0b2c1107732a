//! Steps from run-time code, by the runtime's own structures.
//!
//! ```text
//!   HotSpot, compiled: one size        V8: a frame record
//!     │ return address                   │ return address
//!     │ caller's rbp                     │ caller's rbp   <── rbp
//!     │ ...                              │ context, or the kind of frame
//!     └ rsp, the size below
//! ```
//! On 64-bit ARM, x29 and sp take the places of rbp and rsp.
//!
//! HotSpot's interpreter is in hotspot_interpreter.rs. Its compiled code uses rbp for other
//! purposes: it is known only through the frames of all callees. Anything that does not fit has its
//! own reason: frame pointers would mislead here.

use prof_model::StackEnd;

use crate::code::patterns::is_return_address;
use crate::frame::Caller;
use crate::heuristics::FRAME;
use crate::heuristics::hotspot_interpreter::{enter_interpreter, has_method, leave_interpreter};
use crate::memory::target::{JitCode, JitFrames};
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::registers::Registers;
use crate::rule::CompactRule;
use crate::step::Step;
use crate::step::apply::apply;
use crate::step::lookup::cache_key;

/// A step from code that a runtime describes; `None` if there is none.
pub(super) fn leave_jit_code(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
) -> Option<Result<Caller, StackEnd>> {
    let address = step.frame.lookup_address();
    if place.has_tables && !step.stack.is_builtin(address) {
        return None;
    }
    let code = step.stack.jit_code(address)?;
    let registers = match code.frames {
        JitFrames::None => Err(StackEnd::JitFrame),
        JitFrames::HotSpotContinuation => Err(StackEnd::OnJavaHeap),
        JitFrames::HotSpotInterpreter => leave_interpreter(step),
        JitFrames::V8Builtin if step.frame.interrupted => return None,
        JitFrames::V8 { .. } | JitFrames::V8Builtin => match has_v8_frame(step) {
            Ok(false) => return None,
            Ok(true) => leave_v8_code(step, &code),
            Err(end) => Err(end),
        },
        JitFrames::Fixed { size, complete } => leave_compiled(step, place, &code, (size, complete)),
        JitFrames::Stub {
            size,
            pushes_return_address,
        } => leave_fixed_stub(step, &code, size, pushes_return_address),
        JitFrames::Unknown => leave_stub(step, place, &code),
    };
    let is_compiled = matches!(
        code.frames,
        JitFrames::Fixed { .. } | JitFrames::Stub { .. }
    );
    let caller = registers.and_then(|registers| validate_caller(step, registers, is_compiled));
    let caller = match code.frames {
        JitFrames::Fixed { size, .. } => {
            caller.or_else(|end| leave_pushed_words(step, size).ok_or(end))
        }
        _ => caller,
    };
    Some(caller.map_err(|end| match end {
        StackEnd::UnreadableMemory => StackEnd::JitFrame,
        end => end,
    }))
}

/// Whether the frame pointer points to a frame of V8's: to a context, or to the kind of frame.
fn has_v8_frame(step: &mut Step<'_, '_>) -> Result<bool, StackEnd> {
    /// Kinds are small even numbers.
    const KINDS: u64 = 256;
    const CONTEXT: u64 = 0b01;
    let pointer = step.frame.registers.get(step.frame.layout.frame_pointer);
    let top = step.frame.stack_pointer();
    let Some(pointer) = pointer.filter(|pointer| pointer.wrapping_sub(top) <= FRAME) else {
        return Ok(false);
    };
    if pointer == top {
        // The record was just created, or is about to be removed.
        return Ok(true);
    }
    let word = step.read(pointer.wrapping_sub(8))?;
    Ok(word & 0b11 == CONTEXT || word < KINDS && word % 2 == 0)
}

/// The caller's registers by the frame record, if it is there.
fn leave_v8_code(step: &mut Step<'_, '_>, code: &JitCode) -> Result<Registers, StackEnd> {
    let architecture = step.code.architecture();
    let (at, interrupted) = (step.frame.program_counter(), step.frame.interrupted);
    let start = match code.frames {
        JitFrames::V8 { is_start: true } => Some(code.range.start),
        _ => None,
    };
    let mut read = reader(step, code);
    let rule = architecture.by_frame_record(&mut read, (start, at), interrupted);
    drop(read);
    apply_alone(step, rule)
}

/// The caller's registers by the size of the frame.
fn leave_compiled(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    code: &JitCode,
    (size, complete): (u32, Option<u64>),
) -> Result<Registers, StackEnd> {
    let at = step.frame.program_counter();
    let architecture = step.code.architecture();
    let rule = match complete {
        Some(complete) if at < complete => {
            let mut read = reader(step, code);
            architecture.follow_to(&mut read, code.range.start, at)
        }
        None if step.frame.interrupted => return leave_stub(step, place, code),
        _ => {
            let is_leaf = step.frame.interrupted;
            let mut read = reader(step, code);
            let leaving = || {
                let by_return = architecture.epilogue(&mut read, at);
                by_return.or_else(|| architecture.left_by_jump(&mut read, &code.range, at))
            };
            let leaving = is_leaf.then(leaving).flatten();
            leaving.or_else(|| architecture.fixed_frame(size))
        }
    };
    apply_alone(step, rule)
}

/// The caller's registers from a stub of fixed size: in its first and last instructions, the frame
/// is smaller, and what was left there by earlier calls looks like return addresses.
fn leave_fixed_stub(
    step: &mut Step<'_, '_>,
    code: &JitCode,
    size: u32,
    pushes_return_address: bool,
) -> Result<Registers, StackEnd> {
    const WORD: u32 = 8;
    let architecture = step.code.architecture();
    let complete = architecture.fixed_frame(size);
    if !step.frame.interrupted {
        return apply_alone(step, complete);
    }
    let at = step.frame.program_counter();
    let mut read = reader(step, code);
    let rule = architecture.follow_to(&mut read, code.range.start, at);
    drop(read);
    let rule = match pushes_return_address {
        // To its code, the pushed word is one below a return address.
        true => rule
            .filter(|rule| u32::try_from(rule.cfa_offset) == Ok(size + WORD))
            .and(complete),
        false => rule,
    };
    apply_alone(step, rule)
}

/// The caller above the words that the code has pushed below its frame of this size, for a while:
/// HotSpot's code for comparing and searching strings does so.
fn leave_pushed_words(step: &mut Step<'_, '_>, size: u32) -> Option<Caller> {
    const MOST: u32 = 8;
    if !step.frame.interrupted {
        return None;
    }
    (1..=MOST).find_map(|pushed| {
        let rule = step.code.architecture().fixed_frame(size + 8 * pushed);
        let registers = apply_alone(step, rule).ok()?;
        let caller = validate_caller(step, registers, true).ok()?;
        made_call(step, &caller).then_some(caller)
    })
}

/// Whether the caller, which is run-time code, has made a call: any word of a frame could be taken
/// for a return address.
fn made_call(step: &mut Step<'_, '_>, caller: &Caller) -> bool {
    let target = caller.frame.program_counter();
    let code = step.stack.jit_code(caller.frame.lookup_address());
    match code.map(|code| code.frames) {
        None | Some(JitFrames::None | JitFrames::Stub { .. } | JitFrames::HotSpotContinuation) => {
            false
        }
        // The interpreter pushes return addresses without a call.
        Some(JitFrames::HotSpotInterpreter) => {
            let pointer = caller.frame.registers.get(step.frame.layout.frame_pointer);
            pointer.is_some_and(|pointer| has_method(step, pointer))
        }
        Some(
            JitFrames::Fixed { .. }
            | JitFrames::Unknown
            | JitFrames::V8 { .. }
            | JitFrames::V8Builtin,
        ) => {
            let mut bytes = [0; 16];
            let start = target.wrapping_sub(8);
            let is_read = step.stack.read_elsewhere(start, &mut bytes) == bytes.len();
            let (before, after) = bytes.split_at(8);
            is_read && step.code.architecture().is_return_address(before, after)
        }
    }
}

/// The caller's registers by an analysis of the code: for code with or without frames.
fn leave_stub(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    code: &JitCode,
) -> Result<Registers, StackEnd> {
    let at = step.frame.program_counter();
    let key = CodeAddress {
        module: place.module,
        address: cache_key(at, step.frame.interrupted),
    };
    if let Some(rule) = step.code.known.stubs.get(key) {
        return apply_alone(step, Some(rule));
    }
    let architecture = step.code.architecture();
    let mut read = reader(step, code);
    let rule = architecture.analyze(&mut read, at, 0).guess();
    drop(read);
    match rule {
        Some(rule) => step.code.known.stubs.insert(key, rule),
        // An adapter between compiled and interpreted code.
        None => return enter_interpreter(step),
    }
    apply_alone(step, rule)
}

/// The caller's registers by a rule; the others are unknown, because callees change them.
fn apply_alone(step: &mut Step<'_, '_>, rule: Option<CompactRule>) -> Result<Registers, StackEnd> {
    let all = apply(step, &rule.ok_or(StackEnd::JitFrame)?)?;
    let layout = step.frame.layout;
    let mut registers = Registers::default();
    for register in [
        layout.program_counter,
        layout.stack_pointer,
        layout.frame_pointer,
    ] {
        if let Some(value) = all.get(register) {
            registers.set(register, value);
        }
    }
    Ok(registers)
}

/// The caller with these registers, if it is further up the stack and can have made a call. Only
/// run-time code calls compiled code: other return addresses are leftovers of earlier calls.
fn validate_caller(
    step: &mut Step<'_, '_>,
    registers: Registers,
    is_compiled: bool,
) -> Result<Caller, StackEnd> {
    let end = match step.from_live {
        true => StackEnd::Stale,
        false => StackEnd::JitFrame,
    };
    let layout = step.frame.layout;
    let target = registers.get(layout.program_counter).ok_or(end)?;
    let stack_pointer = registers.get(layout.stack_pointer).ok_or(end)?;
    let call = target.wrapping_sub(1);
    let place = step.code.locate(call).ok_or(end)?;
    let is_possible = match is_return_address(step.code, &place, target) {
        Some(known) => known && !is_compiled,
        None => {
            let code = step.stack.jit_code(call);
            let calls =
                |code: JitCode| !matches!(code.frames, JitFrames::None | JitFrames::Stub { .. });
            code.is_some_and(calls)
        }
    };
    // The return address may still be in its register.
    let is_leaf = layout.has_link_register() && step.frame.interrupted;
    let top = step.frame.stack_pointer();
    let is_above = stack_pointer > top || is_leaf && stack_pointer == top;
    (is_possible && is_above)
        .then(|| step.caller(registers))
        .ok_or(end)
}

/// Reads the code from the live target.
fn reader(step: &mut Step<'_, '_>, code: &JitCode) -> impl FnMut(u64, &mut [u8]) -> usize {
    let range = code.range.clone();
    let stack = &mut *step.stack;
    move |address, buffer| {
        let available = match range.contains(&address) {
            true => usize::try_from(range.end - address).unwrap_or(usize::MAX),
            false => 0,
        };
        let length = available.min(buffer.len());
        stack.read_elsewhere(address, &mut buffer[..length])
    }
}
