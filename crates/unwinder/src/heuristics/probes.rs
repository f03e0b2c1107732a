//! The kernel's page `[uprobes]`, which a process has while any tool has probes in it.
//!
//! ```text
//!   return probe   the stack has the address of this page; the kernel knows the true one, and its
//!                  own call chain has it where frame pointers lead there (Linux 6.11)
//!   entry probe    the probed instruction runs as a copy in this page
//! ```

use std::path::Path;

use prof_model::{AbsoluteAddress, StackEnd};

use super::kernel_chain::join;
use super::leave_leaf;
use crate::code::patterns::is_return_address;
use crate::frame::Caller;
use crate::module::code_mapping::CodeMapping;
use crate::step::Step;
use crate::step::call_edges::{called_function, check_call};

/// Has a caller continue at the true return address, if its own is a return probe's. `depth` frames
/// are known, and `callee` is the place of the last, if that was called.
///
/// # Errors
/// The kernel's chain does not lead there.
pub(crate) fn leave_return_probe(
    step: &mut Step<'_, '_>,
    callee: Option<&CodeMapping>,
    depth: usize,
    caller: &mut Caller,
) -> Result<(), StackEnd> {
    let frame = &mut caller.frame;
    let register = frame.layout.program_counter;
    if frame.interrupted
        || !frame
            .registers
            .get(register)
            .is_some_and(|at| is_in_page(step, at))
    {
        return Ok(());
    }
    let address = true_return(step, depth).ok_or(StackEnd::ReturnProbe)?;
    frame.registers.set(register, address);
    let place = step
        .code
        .locate(address.wrapping_sub(1))
        .ok_or(StackEnd::ReturnProbe)?;
    let is_possible = is_return_address(step.code, &place, address) == Some(true)
        && callee.is_none_or(|callee| check_call(step, callee, &place, frame).is_ok());
    is_possible.then_some(()).ok_or(StackEnd::ReturnProbe)
}

/// The kernel's own opinion on where the step's frame returns to.
fn true_return(step: &Step<'_, '_>, depth: usize) -> Option<u64> {
    let index = match depth {
        1 => 1,
        _ => join(step, depth)?,
    };
    step.stack.kernel_callchain(index)
}

/// A step from the copy of a probed instruction. Nearly all probes are at the first one of a
/// function: where a call leads to it directly, that function represents the frame.
pub(super) fn leave_probed_instruction(step: &mut Step<'_, '_>) -> Option<Caller> {
    if !step.frame.interrupted || !is_in_page(step, step.frame.program_counter()) {
        return None;
    }
    let caller = leave_leaf(step)?;
    step.recorded_as = called_function(step, &caller.frame);
    Some(caller)
}

fn is_in_page(step: &Step<'_, '_>, address: u64) -> bool {
    let target = step.code.target;
    let mapping = target.process.space().find(AbsoluteAddress(address));
    mapping.is_some_and(|mapping| target.modules[mapping.module].path == Path::new("[uprobes]"))
}
