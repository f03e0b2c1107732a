//! The last resort: what the kernel found by following frame pointers when it took the sample.
//!
//! It knows nothing of code without them, but its reads are of the very moment, and not limited to
//! the stack that was copied. Go moves from a goroutine's stack to a larger one to allocate memory,
//! and keeps frame pointers: a millisecond later the goroutine has moved on.

use crate::frames::Frames;
use crate::rule::Rule;
use crate::walk::Walk;

/// The kernel's own limit is 127 frames, unless root has changed it.
const LONGEST: usize = 2048;

impl Walk<'_> {
    /// Goes on from a frame whose caller is not to be found, if the kernel's chain has it and
    /// leads to an entry. Otherwise it does nothing and returns `false`.
    pub(crate) fn follow_kernel(&mut self, frames: &mut Frames<'_>) -> bool {
        let Some(first) = self.join_kernel_chain(frames.count()) else {
            return false;
        };
        let (registers, interrupted) = (self.registers, self.interrupted);
        let end = self.kernel_chain_end(first);
        (self.registers, self.interrupted) = (registers, interrupted);
        let Some(end) = end else {
            return false;
        };
        for index in first..=end {
            let address = self.stack.kernel_callchain(index).unwrap_or(0);
            frames.push(address.wrapping_sub(1));
        }
        true
    }

    /// Where in the kernel's chain the caller of the current frame is. In recursion that cannot be
    /// told.
    fn join_kernel_chain(&mut self, depth: usize) -> Option<usize> {
        let here = self.program_counter();
        let mut found = (1..LONGEST)
            .map_while(|index| Some((index, self.stack.kernel_callchain(index)?)))
            .filter(|&(_, address)| address == here)
            .map(|(index, _)| index + 1);
        match (found.next(), found.next()) {
            (Some(next), None) if !self.interrupted => Some(next),
            // The innermost function has no frame: its caller is not in the chain.
            (None, None) if depth == 2 && !self.interrupted => Some(1),
            _ => None,
        }
    }

    /// The first entry of a thread or coroutine in the chain, if all up to there are callers.
    fn kernel_chain_end(&mut self, first: usize) -> Option<usize> {
        self.interrupted = false;
        for index in first..LONGEST {
            let address = self.stack.kernel_callchain(index)?;
            let place = self.locate(address.wrapping_sub(1))?;
            let register = self.unwinder.layout.program_counter;
            self.registers.set(register, address);
            if matches!(
                self.find_rule(&place).rule,
                Rule::Entry | Rule::ProgramEntry
            ) {
                return Some(index);
            }
            self.is_return_address(&place, address)?.then_some(())?;
        }
        None
    }
}
