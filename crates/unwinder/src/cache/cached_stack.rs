//! Where a walk joins an earlier one of its thread; see [`cached`](crate::cache::unwind_cache).

use std::ops::Range;

use crate::cache::unwind_cache::{
    AddressesRead, CachedUnwind, Checkpoint, Dependencies, FrameState,
};
use crate::frames::Frames;
use crate::walk::Walk;

/// What an earlier walk left.
pub(crate) struct CachedStack<'w> {
    cached: &'w CachedUnwind,
    /// Its outermost checkpoints that are not passed yet.
    left: usize,
    /// Where memory is still the same, once that was asked for.
    unchanged: Option<Range<u64>>,
}

impl<'w> CachedStack<'w> {
    pub(crate) fn new(cached: &'w CachedUnwind) -> Self {
        Self {
            cached,
            left: cached.checkpoints.len(),
            unchanged: None,
        }
    }

    /// The checkpoint at this stack pointer.
    #[inline]
    fn checkpoint(&mut self, stack_pointer: u64) -> Option<&'w Checkpoint> {
        let checkpoints = &self.cached.checkpoints;
        loop {
            let next = checkpoints.get(self.left.checked_sub(1)?)?;
            if next.stack_pointer >= stack_pointer {
                return (next.stack_pointer == stack_pointer).then_some(next);
            }
            self.left -= 1;
        }
    }
}

impl<'w> Walk<'w> {
    /// Notes how the current frame was reached. If that is a frame from which the earlier walk
    /// went on as this one would, adds the rest of the stack and returns `true`.
    pub(crate) fn trace(&mut self, frames: &mut Frames<'_>) -> bool {
        let first = self.unwinder.trace.is_empty();
        let (needs, guessed) = self.take_needs();
        if !first {
            self.unwinder.trace.leave(needs, guessed);
        }
        let stack_pointer = self.stack_pointer();
        if let Some(checkpoint) = self.joins(stack_pointer) {
            self.unwinder.trace.join(checkpoint);
            self.copy_rest(checkpoint, frames);
            return true;
        }
        let frame = self.lookup_address();
        let trace = &mut self.unwinder.trace;
        trace.reach(frame, stack_pointer, || FrameState {
            registers: self.registers,
            interrupted: self.interrupted,
            by_frame_pointer: self.by_frame_pointer,
        });
        false
    }

    /// The earlier walk's checkpoint that the current frame is, if all is the same from there on.
    fn joins(&mut self, stack_pointer: u64) -> Option<&'w Checkpoint> {
        let cached_stack = self.cached_stack.as_mut()?;
        let checkpoint = cached_stack.checkpoint(stack_pointer)?;
        let FrameState {
            registers,
            interrupted,
            by_frame_pointer,
        } = &checkpoint.state;
        let Dependencies {
            registers: used,
            read,
        } = checkpoint.needs;
        let same = self.descents == 0
            && (self.interrupted, self.by_frame_pointer) == (*interrupted, *by_frame_pointer)
            && self.registers.agree(registers, used);
        if !same {
            return None;
        }
        let stack = &mut self.stack;
        let unchanged = (cached_stack.unchanged).get_or_insert_with(|| stack.unchanged());
        let end = read.highest.checked_add(8)?;
        (unchanged.start <= read.lowest && end <= unchanged.end).then_some(checkpoint)
    }

    fn copy_rest(&mut self, checkpoint: &Checkpoint, frames: &mut Frames<'_>) {
        let Some(CachedStack { cached, .. }) = self.cached_stack else {
            return;
        };
        let count = checkpoint.frames;
        if let Some((&here, outer)) = cached.frames.get(..count).and_then(<[_]>::split_last) {
            frames.replace_last(here);
            frames.extend_from_reversed(outer);
        }
        // All but the outermost have a caller that was looked for.
        let reads = cached.reads.get(1..count).unwrap_or_default();
        let live = reads.partition_point(|&read| self.stack.is_live(read));
        let live = u16::try_from(live).unwrap_or(u16::MAX);
        self.remote_read = self.remote_read.saturating_add(live);
    }

    /// Notes that the current frame is the outermost one.
    pub(crate) fn end_trace(&mut self) {
        let (needs, guessed) = self.take_needs();
        self.unwinder.trace.end(needs, guessed);
    }

    /// What was used since the last call.
    fn take_needs(&mut self) -> (Dependencies, bool) {
        let layout = self.unwinder.layout;
        let always = 1 << layout.program_counter | 1 << layout.stack_pointer;
        let read = std::mem::replace(&mut self.stack.addresses_read, AddressesRead::NONE);
        let registers = std::mem::take(&mut self.used) | always;
        let guessed = std::mem::take(&mut self.stack.guessed);
        (Dependencies { registers, read }, guessed)
    }
}
