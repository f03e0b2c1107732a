//! Steps from run-time code, by the runtime's own structures.
//!
//! ```text
//!   compiled: frames of one size       interpreted (HotSpot, x86-64)
//!     │ return address                   │ return address                      rbp + 8
//!     │ caller's rbp                     │ caller's rbp                   rbp ──┘
//!     │ ...                              │ caller's rsp, before arguments were moved
//!     └ rsp, the size below              │ ...      │ method                  rbp - 24
//!                                        │ ...      │ bytecode pointer        rbp - 64, or r13
//! ```
//! Compiled code uses rbp for other purposes: it is known only through the frames of all callees.
//! Anything that does not fit has its own reason: frame pointers would mislead here.

use prof_model::StackEnd;

use crate::code::patterns::is_return_address;
use crate::frame::Caller;
use crate::heuristics::FRAME;
use crate::memory::target::{JitCode, JitFrames};
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::registers::Registers;
use crate::rule::CompactRule;
use crate::step::Step;
use crate::step::apply::apply;
use crate::step::lookup::cache_key;

/// Distances below the frame pointer in HotSpot's interpreted frames.
const SENDER_SP: u64 = 8;
const LAST_SP: u64 = 16;
const METHOD: u64 = 24;
const BYTECODE: u64 = 64;
/// The distance of the return address above it.
const RETURN: u64 = 8;
/// DWARF's number of r13: the bytecode pointer, and in calls the caller's stack pointer.
const BYTECODE_REGISTER: u8 = 13;
const SENDER: u8 = BYTECODE_REGISTER;
/// DWARF's number of rax.
const ACCUMULATOR: u8 = 0;

/// A step from run-time code; `None` if there is no runtime with code there.
pub(super) fn leave_jit_code(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
) -> Option<Result<Caller, StackEnd>> {
    if place.has_tables {
        return None;
    }
    let code = step.stack.jit_code(step.frame.lookup_address())?;
    let registers = match code.frames {
        JitFrames::None => Err(StackEnd::JitFrame),
        JitFrames::HotSpotContinuation => Err(StackEnd::OnJavaHeap),
        JitFrames::HotSpotInterpreter => leave_interpreter(step),
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
            let epilogue = is_leaf.then(|| architecture.epilogue(&mut read, at));
            epilogue
                .flatten()
                .or_else(|| architecture.fixed_frame(size))
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
            let method = pointer.map(|pointer| step.read(pointer.wrapping_sub(METHOD)));
            matches!(method, Some(Ok(method)) if step.stack.bytecodes(method).is_some())
        }
        Some(JitFrames::Fixed { .. } | JitFrames::Unknown) => {
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

/// The caller's registers by the interpreter's frame, if there is one.
fn leave_interpreter(step: &mut Step<'_, '_>) -> Result<Registers, StackEnd> {
    let pointer = step.frame.registers.get(step.frame.layout.frame_pointer);
    let pointer = pointer.ok_or(StackEnd::JitFrame)?;
    let distance = pointer.wrapping_sub(step.frame.stack_pointer());
    if !pointer.is_multiple_of(8) || distance > FRAME {
        return enter_interpreter(step);
    }
    // While a frame is created or removed, the frame pointer is the caller's.
    let Some(method) = interpreted_method(step, pointer)? else {
        return enter_interpreter(step);
    };
    step.recorded_as = step.stack.interpreted_method(method);
    let sender = Sender {
        stack_pointer: step.read(pointer.wrapping_sub(SENDER_SP))?,
        link: step.read(pointer)?,
        target: step.read(pointer.wrapping_add(RETURN))?,
    };
    sender_registers(step, pointer, &sender)
}

/// The method whose frame is at the frame pointer, if it runs there.
fn interpreted_method(step: &mut Step<'_, '_>, pointer: u64) -> Result<Option<u64>, StackEnd> {
    let top = step.frame.stack_pointer();
    // A part of the frame may not exist yet.
    let is_there = |below: u64| pointer.wrapping_sub(below) >= top;
    if !is_there(METHOD) {
        return Ok(None);
    }
    let method = step.read(pointer.wrapping_sub(METHOD))?;
    let Some(bytecodes) = step.stack.bytecodes(method) else {
        return Ok(None);
    };
    let is_in = |bytecode: u64| match bytecodes.is_empty() {
        // A native method.
        true => bytecode == bytecodes.start,
        false => bytecodes.contains(&bytecode),
    };
    let bytecode = step.frame.registers.get(BYTECODE_REGISTER);
    let in_register = step.frame.interrupted && bytecode.is_some_and(is_in);
    if in_register || !is_there(BYTECODE) {
        return Ok(in_register.then_some(method));
    }
    let saved = step.read(pointer.wrapping_sub(BYTECODE))?;
    if !step.frame.interrupted {
        let is_native = bytecodes.is_empty() && saved == 0;
        return Ok((is_native || is_in(saved)).then_some(method));
    }
    // Before and after a call, the register holds something else. A method whose callee creates its
    // frame has stored the end of its own stack.
    let stored = stored_stack_pointer(step, pointer)?;
    let is_innermost = stored == 0 || stored == top;
    Ok((is_innermost && is_in(saved)).then_some(method))
}

/// The stack pointer that the interpreted method with this frame has stored for a call, or 0: an
/// address, from JDK 22 on a negative number of words from the frame pointer.
fn stored_stack_pointer(step: &mut Step<'_, '_>, pointer: u64) -> Result<u64, StackEnd> {
    let stored = step.read(pointer.wrapping_sub(LAST_SP))?;
    Ok(match stored.cast_signed() < 0 {
        true => pointer.wrapping_add(stored.wrapping_mul(8)),
        false => stored,
    })
}

/// The caller's registers while the interpreter creates the frame of a method that was just called:
/// r13 is then the caller's stack pointer, which an interpreted caller has stored, too.
fn enter_interpreter(step: &mut Step<'_, '_>) -> Result<Registers, StackEnd> {
    if !step.frame.interrupted {
        return Err(StackEnd::JitFrame);
    }
    let layout = step.frame.layout;
    let top = step.frame.stack_pointer();
    let register = |number| step.frame.registers.get(number).ok_or(StackEnd::JitFrame);
    let (stack_pointer, pointer) = (register(SENDER)?, register(layout.frame_pointer)?);
    let accumulator = register(ACCUMULATOR)?;
    let (first, second) = (step.read(top)?, step.read(top.wrapping_add(8))?);
    // The return address is on the stack; in rax while stack space for variables is allocated; then
    // on the stack again, and the frame pointer follows.
    let candidates = [(first, pointer), (second, first), (accumulator, pointer)];
    for (target, link) in candidates {
        let call = target.wrapping_sub(1);
        let Some(place) = step.code.locate(call) else {
            continue;
        };
        let code = match place.has_tables {
            true => None,
            false => step.stack.jit_code(call),
        };
        let fits = match code.map(|code| code.frames) {
            Some(JitFrames::HotSpotInterpreter) => {
                stored_stack_pointer(step, link) == Ok(stack_pointer)
            }
            Some(JitFrames::Fixed { .. } | JitFrames::Unknown) => true,
            None
            | Some(JitFrames::None | JitFrames::Stub { .. } | JitFrames::HotSpotContinuation) => {
                false
            }
        };
        if fits {
            let sender = Sender {
                target,
                stack_pointer,
                link,
            };
            return sender_registers(step, top, &sender);
        }
    }
    Err(StackEnd::JitFrame)
}

/// What an interpreted method knows of its caller.
struct Sender {
    /// The return address.
    target: u64,
    stack_pointer: u64,
    /// The frame pointer.
    link: u64,
}

/// The registers of the caller of an interpreted method, whose stack pointer is above `inner`.
fn sender_registers(
    step: &Step<'_, '_>,
    inner: u64,
    sender: &Sender,
) -> Result<Registers, StackEnd> {
    let stack_pointer = sender.stack_pointer;
    let distance = stack_pointer.wrapping_sub(inner);
    if !stack_pointer.is_multiple_of(8) || stack_pointer <= inner || distance > FRAME {
        return Err(StackEnd::JitFrame);
    }
    let layout = step.frame.layout;
    let mut registers = Registers::default();
    registers.set(layout.stack_pointer, stack_pointer);
    registers.set(layout.frame_pointer, sender.link);
    registers.set(layout.program_counter, sender.target & layout.address_mask);
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
    let is_above = stack_pointer > step.frame.stack_pointer();
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
