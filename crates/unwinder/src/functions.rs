//! The functions of frames, if a runtime names functions by their frames and keeps frame pointers.
//!
//! ```text
//!   │ return address      caller's stack pointer is above
//!   │ caller's rbp   <── rbp
//!   │ ...                 words that lead to the function
//! ```

use crate::code::ProcessCode;
use crate::frame::Frame;
use crate::frames::Frames;
use crate::memory::stack::Stack;

/// The size of the return address and the caller's frame pointer.
const LINK: u64 = 16;

/// Lets its function represent the frame, which has made a call and was pushed last.
pub(crate) fn represent_caller(
    frame: &Frame,
    code: &mut ProcessCode<'_>,
    stack: &mut Stack<'_>,
    frames: &mut Frames<'_>,
) {
    let pointer = frame.registers.get(frame.layout.frame_pointer);
    if !frame.interrupted
        && let Some(function) = function(frame, pointer, code, stack)
    {
        frames.replace_last(function);
    }
}

/// Lets its function represent the frame that a sample hit. The caller's stack pointer tells
/// whether it is complete.
pub(crate) fn represent_sampled(
    frame: &Frame,
    caller: &Frame,
    code: &mut ProcessCode<'_>,
    stack: &mut Stack<'_>,
    frames: &mut Frames<'_>,
) {
    let pointer = frame.registers.get(frame.layout.frame_pointer);
    let is_complete = |pointer: &u64| pointer.wrapping_add(LINK) == caller.stack_pointer();
    if let Some(function) = function(frame, pointer.filter(is_complete), code, stack) {
        frames.replace_first(function);
    }
}

/// What represents the function of a frame, given the frame pointer if it is complete.
fn function(
    frame: &Frame,
    pointer: Option<u64>,
    code: &mut ProcessCode<'_>,
    stack: &mut Stack<'_>,
) -> Option<u64> {
    let address = frame.lookup_address();
    let in_file = code.locate(address)?.has_tables;
    stack.function(address, in_file, pointer)
}
