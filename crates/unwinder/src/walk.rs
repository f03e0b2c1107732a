//! One walk from a sample's registers to the entry of its thread.

use prof_model::StackEnd;

use crate::cache::code_facts::CodeAddress;
use crate::frames::Frames;
use crate::memory::stack::Stack;
use crate::memory::target::Target;
use crate::module::code_mapping::CodeMapping;
use crate::registers::Registers;
use crate::rule::Rule;
use crate::unwinder::Unwinder;

/// No stack is deeper: 1 GB of frames of 1 KB. Keeps hostile stacks from taking forever.
const STEPS: u32 = 1 << 20;
/// How often a walk may go to lower addresses (another stack) before it counts as a loop.
const DESCENTS: u32 = 32;
/// Mappings remembered during a walk.
pub(crate) const PLACES: usize = 4;

/// The state of a walk: a frame's registers, and what is known about them.
pub(crate) struct Walk<'w> {
    pub(crate) unwinder: &'w mut Unwinder,
    pub(crate) target: &'w Target<'w>,
    pub(crate) registers: Registers,
    pub(crate) stack: Stack<'w>,
    /// The program counter is where the frame was interrupted, not where a call returns to.
    pub(crate) interrupted: bool,
    /// The frame was found by following a frame pointer.
    pub(crate) by_frame_pointer: bool,
    /// How often the walk went to lower addresses.
    pub(crate) descents: u32,
    pub(crate) remote_read: u16,
    /// Where the frame before is, if the copy alone has shown that the current one called it.
    pub(crate) callee: Option<CodeAddress>,
    pub(crate) places: [Option<CodeMapping>; PLACES],
    pub(crate) next_place: usize,
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
            remote_read: 0,
            callee: None,
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
                Err(StackEnd::Root) => return (StackEnd::Root, self.remote_read),
                Err(end) => {
                    let followed = self.follow_kernel(frames);
                    let end = if followed { StackEnd::Root } else { end };
                    return (end, self.remote_read);
                }
            }
        }
        (StackEnd::FrameLimit, self.remote_read)
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
        self.callee = None;
        let now = self.stack_pointer();
        self.stack.reach(now);
        if now < was || (now == was && !was_interrupted) {
            self.descents += 1;
        }
        if std::mem::take(&mut self.stack.went_live) {
            self.remote_read = self.remote_read.saturating_add(1);
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
            // The other stack may have changed since.
            Rule::StackSwitch if self.follow_kernel(frames) => return Err(StackEnd::Root),
            Rule::Guess(_) | Rule::SignalReturn | Rule::StackSwitch | Rule::Unknown => {
                return self.guess(&place, &found.rule);
            }
        };
        let caller = caller.map(|registers| Caller {
            registers,
            interrupted: found.signal_frame,
            by_frame_pointer: false,
        });
        let callee = (!found.starts_function).then_some(&place);
        match caller.and_then(|caller| self.check(callee, caller)) {
            Ok(caller) => Ok(caller),
            Err(end) => self.without_cfi(&place, end),
        }
    }

    /// Whether a caller that CFI yields can be. `callee` is where the current frame's function is, if
    /// that was called.
    fn check(&mut self, callee: Option<&CodeMapping>, caller: Caller) -> Result<Caller, StackEnd> {
        let layout = self.unwinder.layout;
        let target = caller.registers.get(layout.program_counter);
        let target = target.ok_or(StackEnd::UnreadableMemory)?;
        if target == 0 {
            // What looks like the end may be a stack that was given back in the meantime: zeros
            // all over, and no seam tells zeros that were copied from these.
            let emptied = self.stack.went_live && self.stack.is_overlap_blank();
            return Err(if emptied {
                StackEnd::Stale
            } else {
                StackEnd::Root
            });
        }
        let place = self
            .locate(lookup_address(target, caller.interrupted))
            .ok_or(if self.stack.went_live {
                StackEnd::Stale
            } else {
                StackEnd::NotCode
            })?;
        let stands_still = caller.registers.get(layout.stack_pointer) == Some(self.stack_pointer())
            && target == self.program_counter();
        if stands_still {
            return Err(StackEnd::Loop);
        }
        if self.stack.went_live && !caller.interrupted {
            let follows_call = self.is_return_address(&place, target);
            if follows_call == Some(false) && !self.is_coroutine_end(&place, target) {
                return Err(StackEnd::Stale);
            }
            if let (Some(true), Some(callee)) = (follows_call, callee) {
                self.check_call(callee, &place, &caller)?;
            }
        }
        Ok(caller)
    }
}

#[inline]
fn lookup_address(program_counter: u64, interrupted: bool) -> u64 {
    program_counter.wrapping_sub(u64::from(!interrupted))
}
