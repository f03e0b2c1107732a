//! A walk from a sample's registers to the entry of its thread.

use std::ops::RangeInclusive;

use prof_model::StackEnd;

use crate::code::ProcessCode;
use crate::frame::{Caller, Evidence, Frame};
use crate::frames::Frames;
use crate::functions::{represent_caller, represent_sampled};
use crate::heuristics::kernel_chain::rest_of_chain;
use crate::heuristics::probes::leave_return_probe;
use crate::heuristics::{guess, outside_code, without_cfi};
use crate::memory::stack::Stack;
use crate::module::code_mapping::CodeMapping;
use crate::rule::Rule;
use crate::step::Step;
use crate::step::apply::{apply, evaluate};
use crate::step::check::check;
use crate::step::exit::{exit, land};
use crate::step::fast;
use crate::step::lookup::find_rule;

/// No stack is deeper: 1 GB of frames of 1 KB. Keeps hostile stacks from taking forever.
pub(crate) const STEPS: u32 = 1 << 20;
/// How often a walk may go to lower addresses (another stack) before it counts as a loop.
const DESCENTS: u32 = 32;

/// How a walk continues.
#[expect(clippy::large_enum_variant, reason = "one value, for one step")]
enum Next {
    Caller(Caller),
    /// With these frames of the kernel's chain, up to the root.
    KernelChain(RangeInclusive<usize>),
}

/// Walks to the end; returns why it ended.
pub(crate) fn walk<'w>(
    sampled: &Frame,
    code: &mut ProcessCode<'w>,
    stack: &mut Stack<'w>,
    frames: &mut Frames<'_>,
) -> StackEnd {
    let at = sampled.program_counter();
    if code.locate(at).is_none() && code.target.is_between_programs(at, !stack.is_empty()) {
        return StackEnd::NoUserState;
    }
    let (mut frame, mut evidence) = (*sampled, Evidence::default());
    let mut descents = 0;
    frames.push(frame.program_counter());
    let has_functions = stack.has_functions();
    for _ in 0..STEPS {
        if let Some(found) = fast::advance(&mut frame, code, stack, frames) {
            evidence = found;
        } else {
            let mut step = Step::new(&frame, evidence, code, stack);
            let next = match descents > DESCENTS {
                true => Err(StackEnd::Loop),
                false => find_next(&mut step, frames),
            };
            let next = match next {
                Ok(next) => Ok(next),
                Err(end) => after_the_end(&mut step, frames, end),
            };
            match next {
                Ok(Next::Caller(caller)) => {
                    descents += u32::from(descends(&frame, &caller.frame));
                    Caller { frame, evidence } = caller;
                }
                Ok(Next::KernelChain(rest)) => {
                    for index in rest {
                        let address = stack.kernel_callchain(index).unwrap_or(0);
                        frames.push(address.wrapping_sub(1));
                    }
                    return StackEnd::Root;
                }
                Err(end) => return end,
            }
            stack.reach(frame.stack_pointer());
            frames.push(frame.lookup_address());
        }
        frames.count_remote(evidence.from_live);
        if has_functions {
            if frames.count() == 2 {
                represent_sampled(sampled, &frame, code, stack, frames);
            }
            represent_caller(&frame, code, stack, frames);
        }
    }
    StackEnd::FrameLimit
}

/// Finds the caller of the step's frame, which is the last of `frames`.
fn find_next(step: &mut Step<'_, '_>, frames: &mut Frames<'_>) -> Result<Next, StackEnd> {
    let Some(place) = step.code.locate(step.frame.lookup_address()) else {
        // Only a sample's own address can be outside of any code: a call through a wild pointer, or
        // code whose mapping is unknown.
        return outside_code(step).map(Next::Caller);
    };
    let found = find_rule(step.code, step.frame, &place);
    if found.starts_function {
        frames.replace_last(step.frame.program_counter());
    }
    let is_ordinary = matches!(found.rule, Rule::Compact(_)) && !found.signal_frame;
    let frame = is_ordinary.then(|| step.frame.stack_pointer());
    step.stack.expect_end_of(frame);
    let registers = match &found.rule {
        Rule::Compact(rule) => apply(step, rule),
        Rule::Evaluate | Rule::RestoresContext => evaluate(step, &place, &found),
        Rule::Exit => return exit(step, &place).map(Next::Caller),
        Rule::Landing(context) => match land(step, *context) {
            Some(caller) => return Ok(Next::Caller(caller)),
            None => evaluate(step, &place, &found),
        },
        Rule::Entry | Rule::ProgramEntry => return Err(StackEnd::Root),
        // The code that ends a goroutine is near its stack's top, within any dump: this was read
        // when the frames below had returned.
        Rule::GoroutineEnd if step.evidence.from_live => return Err(StackEnd::Stale),
        Rule::GoroutineEnd => return Err(StackEnd::Root),
        rule => {
            // The other stack may have changed since.
            if *rule == Rule::StackSwitch
                && let Some(rest) = rest_of_chain(step, frames.count(), false)
            {
                return Ok(Next::KernelChain(rest));
            }
            let caller = guess(step, &place, rule);
            if let (Ok(_), Some(address)) = (&caller, step.recorded_as) {
                frames.replace_last(address);
            }
            return caller
                .map(Next::Caller)
                .map_err(|end| in_go(step, &place, end));
        }
    };
    let callee = (!found.starts_function).then_some(&place);
    let end = match registers {
        Ok(registers) => {
            let mut caller = step.caller(registers);
            caller.frame.interrupted = found.signal_frame;
            leave_return_probe(step, callee, frames.count(), &mut caller)?;
            match check(step, callee, &caller) {
                Ok(()) => return Ok(Next::Caller(caller)),
                Err(end) => end,
            }
        }
        Err(end) => end,
    };
    let caller = without_cfi(step, &place, end);
    caller
        .map(Next::Caller)
        .map_err(|end| in_go(step, &place, end))
}

/// The end of a stack in this code, which may be Go's: its compiler makes tables for all that is
/// not C.
fn in_go(step: &mut Step<'_, '_>, place: &CodeMapping, end: StackEnd) -> StackEnd {
    if !matches!(end, StackEnd::NoUnwindInfo | StackEnd::FramePointersEnded) {
        return end;
    }
    let tables = step.code.known.modules.get(place.module);
    match tables.filter(|tables| tables.is_go) {
        Some(tables) if tables.lacks_debug_frame() => StackEnd::GoWithoutTables,
        Some(_) => StackEnd::CalledFromGo,
        None => end,
    }
}

/// How to continue if no caller was found for this reason.
fn after_the_end(
    step: &mut Step<'_, '_>,
    frames: &Frames<'_>,
    end: StackEnd,
) -> Result<Next, StackEnd> {
    let depth = frames.count();
    let is_call_from_go = end == StackEnd::CalledFromGo;
    match end {
        StackEnd::Root => Err(end),
        // The kernel had no stack to dump: the process is in exec or exiting.
        StackEnd::UnreadableMemory if depth == 1 && step.stack.is_empty() => {
            Err(StackEnd::NoUserState)
        }
        _ => match rest_of_chain(step, depth, is_call_from_go && depth == 1) {
            Some(rest) => Ok(Next::KernelChain(rest)),
            None if is_call_from_go && !lacks_frame_pointers(step, frames) => {
                Err(StackEnd::OtherStack)
            }
            None => Err(end),
        },
    }
}

/// Whether C of the Go program itself keeps no frame pointers, so that the kernel's chain cannot
/// lead through it. Other C is that of libraries.
fn lacks_frame_pointers(step: &mut Step<'_, '_>, frames: &Frames<'_>) -> bool {
    let layout = step.frame.layout;
    let Some(go) = step.code.locate(step.frame.lookup_address()) else {
        return false;
    };
    frames.so_far().iter().enumerate().any(|(index, &address)| {
        let place = step.code.locate(address);
        let Some(place) = place.filter(|place| place.module == go.module) else {
            return false;
        };
        let mut frame = *step.frame;
        frame.interrupted = index == 0;
        let pc = address.wrapping_add(u64::from(!frame.interrupted));
        frame.registers.set(layout.program_counter, pc);
        match find_rule(step.code, &frame, &place).rule {
            Rule::CallFromGo => false,
            Rule::Compact(rule) => rule.cfa_register != layout.frame_pointer,
            _ => true,
        }
    })
}

/// Whether the caller's stack is at lower addresses: it is another stack, or there is no progress.
fn descends(frame: &Frame, caller: &Frame) -> bool {
    let (was, now) = (frame.stack_pointer(), caller.stack_pointer());
    now < was || (now == was && !frame.interrupted)
}
