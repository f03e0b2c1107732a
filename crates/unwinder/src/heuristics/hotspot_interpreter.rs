//! Steps from HotSpot's interpreter, by its frames (64-bit ARM has x29, x22 and sp instead, and the
//! bytecode pointer at x29 - 72).
//!
//! ```text
//!   │ return address                      rbp + 8
//!   │ caller's rbp                   rbp ──┘
//!   │ caller's rsp, before arguments were moved
//!   │ ...      │ method                  rbp - 24
//!   │ ...      │ bytecode pointer        rbp - 64, or r13
//! ```

use prof_model::StackEnd;

use crate::heuristics::FRAME;
use crate::memory::target::JitFrames;
use crate::registers::Registers;
use crate::step::Step;

/// Distances below the frame pointer.
const SENDER_SP: u64 = 8;
const LAST_SP: u64 = 16;
const METHOD: u64 = 24;
/// The most room below the values of an interpreted method, where there is any.
const ROOM: u64 = 64 << 10;
/// The distance of the return address above it.
const RETURN: u64 = 8;

/// The caller's registers by the interpreter's frame, if there is one.
pub(super) fn leave_interpreter(step: &mut Step<'_, '_>) -> Result<Registers, StackEnd> {
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

/// Whether the frame at this frame pointer has a method.
pub(super) fn has_method(step: &mut Step<'_, '_>, pointer: u64) -> bool {
    let method = step.read(pointer.wrapping_sub(METHOD));
    method.is_ok_and(|method| step.stack.bytecodes(method).is_some())
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
    let layout = step.code.architecture().interpreter_frames();
    let bytecode = step.frame.registers.get(layout.bytecode);
    let in_register = step.frame.interrupted && bytecode.is_some_and(is_in);
    if in_register || !is_there(layout.saved_bytecode) {
        return Ok(in_register.then_some(method));
    }
    let saved = step.read(pointer.wrapping_sub(layout.saved_bytecode))?;
    if !step.frame.interrupted {
        let is_native = bytecodes.is_empty() && saved == 0;
        return Ok((is_native || is_in(saved)).then_some(method));
    }
    // Before and after a call, the register holds something else. A method whose callee creates its
    // frame has stored the end of its own stack.
    let stored = stored_stack_pointer(step, pointer)?;
    let is_innermost = stored == 0 || is_end_of_stack(step, stored, top);
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

/// Whether what an interpreted method has stored for a call is its stack pointer. On 64-bit ARM it
/// is the end of its values, below which there is room.
fn is_end_of_stack(step: &Step<'_, '_>, stored: u64, stack_pointer: u64) -> bool {
    match step.frame.layout.has_link_register() {
        true => stored.wrapping_sub(stack_pointer) < ROOM,
        false => stored == stack_pointer,
    }
}

/// The caller's registers while the interpreter creates the frame of a method that was just called:
/// r13 is then the caller's stack pointer, which an interpreted caller has stored, too.
pub(super) fn enter_interpreter(step: &mut Step<'_, '_>) -> Result<Registers, StackEnd> {
    if !step.frame.interrupted {
        return Err(StackEnd::JitFrame);
    }
    let senders = step.code.architecture().interpreter_frames().senders;
    let mut found = senders.iter().map(|&sender| enter_from(step, sender));
    found.find(Result::is_ok).unwrap_or(Err(StackEnd::JitFrame))
}

/// The same with the caller's stack pointer in the register `sender`.
fn enter_from(step: &mut Step<'_, '_>, sender: u8) -> Result<Registers, StackEnd> {
    let (frame, layout) = (step.frame, step.frame.layout);
    let top = frame.stack_pointer();
    let register = |number| frame.registers.get(number).ok_or(StackEnd::JitFrame);
    let (stack_pointer, pointer) = (register(sender)?, register(layout.frame_pointer)?);
    let by_register = step.code.architecture().interpreter_frames().return_address;
    let by_register = register(by_register)?;
    let (first, second) = (step.read(top)?, step.read(top.wrapping_add(8))?);
    // The return address is on the stack; in rax while stack space for variables is allocated; then
    // on the stack again, and the frame pointer follows.
    let candidates = [(first, pointer), (second, first), (by_register, pointer)];
    let in_memory = match layout.has_link_register() {
        true => 2,
        false => 0,
    };
    for (target, link) in candidates.into_iter().skip(in_memory) {
        let call = target.wrapping_sub(1);
        let Some(place) = step.code.locate(call) else {
            continue;
        };
        let code = match place.has_tables {
            true => None,
            false => step.stack.jit_code(call),
        };
        let fits = match code.map(|code| code.frames) {
            Some(JitFrames::HotSpotInterpreter) => stored_stack_pointer(step, link)
                .is_ok_and(|stored| is_end_of_stack(step, stored, stack_pointer)),
            Some(
                JitFrames::Fixed { .. }
                | JitFrames::Unknown
                | JitFrames::V8 { .. }
                | JitFrames::V8Builtin,
            ) => true,
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
    let layout = step.frame.layout;
    let mut stack_pointer = sender.stack_pointer;
    if layout.has_link_register() && inner.wrapping_sub(stack_pointer) < ROOM {
        // The frame begins in the room of an interpreted caller, which the frame pointer leads to.
        stack_pointer = inner;
    }
    let distance = stack_pointer.wrapping_sub(inner);
    // A call with a link register does not move it.
    let least = u64::from(!layout.has_link_register());
    if !stack_pointer.is_multiple_of(8) || distance > FRAME || distance < least {
        return Err(StackEnd::JitFrame);
    }
    let mut registers = Registers::default();
    registers.set(layout.stack_pointer, stack_pointer);
    registers.set(layout.frame_pointer, sender.link);
    registers.set(layout.program_counter, sender.target & layout.address_mask);
    Ok(registers)
}
