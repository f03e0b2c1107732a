//! What walks found of deep stacks, so that the next ones need not find it again.
//!
//! From a frame on, a walk depends on nothing but the registers and the memory that it uses from
//! there on (and on the process's mappings). So it leaves checkpoints behind, and where the next
//! walk of the thread has the same registers, and the memory is the same, the rest is known:
//!
//! ```text
//!   earlier walk:   frame ──> checkpoint ──> checkpoint ─────────────> root
//!                                               └ registers used and addresses read on this way
//!   this one:   other frame ──> other frame ────┘ the same in them: the rest is copied
//! ```
//! Frames that no CFI leads from are found by looking around on the stack, which cannot be told so
//! simply: no checkpoint is kept in front of those.

use crate::registers::Registers;

/// The outer part of a thread's stack as a walk has found it, from
/// [`Unwinder::keep`](crate::Unwinder::keep).
#[derive(Debug, Default)]
pub struct CachedUnwind {
    /// The outermost frame comes first.
    pub(crate) frames: Vec<u64>,
    /// For each frame, the highest address that was read to find its caller; not ascending.
    pub(crate) reads: Vec<u64>,
    /// The outermost comes first.
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// A frame that later walks may come to, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) stack_pointer: u64,
    pub(crate) state: FrameState,
    /// How many frames there are from the outermost one to this one. In [`UnwindTrace`]: the index.
    pub(crate) frames: usize,
    /// What is used from here to the root. In [`UnwindTrace`]: from here to the next checkpoint.
    pub(crate) needs: Dependencies,
}

/// What a walk goes on from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameState {
    pub(crate) registers: Registers,
    pub(crate) interrupted: bool,
    pub(crate) by_frame_pointer: bool,
}

/// What a part of a walk depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependencies {
    /// The numbers of the registers used, as bits.
    pub(crate) registers: u64,
    pub(crate) read: AddressesRead,
}

/// The first byte of the lowest word read, and of the highest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressesRead {
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
}

impl AddressesRead {
    pub(crate) const NONE: Self = Self {
        lowest: u64::MAX,
        highest: 0,
    };

    #[inline]
    pub(crate) fn add(&mut self, address: u64) {
        self.lowest = self.lowest.min(address);
        self.highest = self.highest.max(address);
    }
}

impl Dependencies {
    pub(crate) const NONE: Self = Self {
        registers: 0,
        read: AddressesRead::NONE,
    };

    fn add(&mut self, other: Self) {
        self.registers |= other.registers;
        self.read.lowest = self.read.lowest.min(other.read.lowest);
        self.read.highest = self.read.highest.max(other.read.highest);
    }
}

impl CachedUnwind {
    /// Trails of fewer frames would not pay.
    const LEAST: usize = 256;
    /// Deeper stacks leave no trail: a bound on its memory.
    const MOST: usize = 1 << 15;

    fn clear(&mut self) {
        self.frames.clear();
        self.reads.clear();
        self.checkpoints.clear();
    }
}

/// The steps of a walk while it goes on, innermost first, up to where it joins an earlier one.
#[derive(Debug)]
pub(crate) struct UnwindTrace {
    frames: Vec<u64>,
    reads: Vec<u64>,
    checkpoints: Vec<Checkpoint>,
    /// What was used since the last checkpoint.
    since: Dependencies,
    joined: Option<Checkpoint>,
    /// Whether they lead to the root.
    complete: bool,
    /// Whether they are not to be kept.
    spoiled: bool,
}

impl Default for UnwindTrace {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            reads: Vec::new(),
            checkpoints: Vec::new(),
            since: Dependencies::NONE,
            joined: None,
            complete: false,
            spoiled: false,
        }
    }
}

impl UnwindTrace {
    /// A checkpoint each so many frames.
    const EVERY: usize = 64;

    /// A walk begins.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.reads.clear();
        self.checkpoints.clear();
        self.since = Dependencies::NONE;
        self.joined = None;
        self.complete = false;
        self.spoiled = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// A frame was reached.
    pub(crate) fn reach(&mut self, frame: u64, stack_pointer: u64, state: impl Fn() -> FrameState) {
        if self.frames.len() >= CachedUnwind::MOST {
            self.spoiled = true;
            return;
        }
        if self.frames.len().is_multiple_of(Self::EVERY) {
            let since = std::mem::replace(&mut self.since, Dependencies::NONE);
            if let Some(last) = self.checkpoints.last_mut() {
                last.needs = since;
            }
            self.checkpoints.push(Checkpoint {
                stack_pointer,
                state: state(),
                frames: self.frames.len(),
                needs: Dependencies::NONE,
            });
        }
        self.frames.push(frame);
    }

    /// The frame that was reached last has another address.
    pub(crate) fn replace_last(&mut self, frame: u64) {
        if let Some(last) = self.frames.last_mut() {
            *last = frame;
        }
    }

    /// The caller of the frame that was reached last has been found, by means of this.
    pub(crate) fn leave(&mut self, needs: Dependencies, guessed: bool) {
        if self.spoiled {
            return;
        }
        let highest = needs.read.highest;
        let ascends = self.reads.last().is_none_or(|&last| last <= highest);
        self.need(needs, guessed || !ascends);
        self.reads.push(highest);
    }

    /// The frame reached now is that of this checkpoint.
    pub(crate) fn join(&mut self, checkpoint: &Checkpoint) {
        self.joined = Some(*checkpoint);
        self.complete = true;
    }

    /// The frame that was reached last is the root.
    pub(crate) fn end(&mut self, needs: Dependencies, guessed: bool) {
        self.need(needs, guessed);
        // It has no caller.
        self.reads.push(u64::MAX);
        self.complete = true;
    }

    fn need(&mut self, needs: Dependencies, guessed: bool) {
        if guessed {
            self.checkpoints.clear();
            self.since = Dependencies::NONE;
        } else {
            self.since.add(needs);
        }
    }

    /// The walk does not follow from registers and memory alone.
    pub(crate) fn mark_uncacheable(&mut self) {
        self.spoiled = true;
    }

    /// Whether the walk leaves a trail.
    pub(crate) fn is_cacheable(&self) -> bool {
        let whole = self.complete && !self.spoiled;
        whole && (CachedUnwind::LEAST..=CachedUnwind::MOST).contains(&self.count())
    }

    /// Frames from the first one noted to the root.
    fn count(&self) -> usize {
        self.joined.map_or(0, |joined| joined.frames) + self.frames.len()
    }

    /// Makes the trail that of this walk, which joined it or no earlier one, or clears it.
    pub(crate) fn keep(&self, cached: &mut CachedUnwind) {
        if !self.is_cacheable() {
            cached.clear();
            return;
        }
        let count = self.count();
        let joined = count - self.frames.len();
        cached.frames.truncate(joined);
        cached.frames.extend(self.frames.iter().rev());
        cached.reads.truncate(joined);
        cached.reads.extend(self.reads.iter().rev());
        let inner = |checkpoint: &Checkpoint| checkpoint.frames <= joined;
        let outer = cached.checkpoints.partition_point(inner);
        cached.checkpoints.truncate(outer);
        let mut needs = self
            .joined
            .map_or(Dependencies::NONE, |joined| joined.needs);
        needs.add(self.since);
        for checkpoint in self.checkpoints.iter().rev() {
            needs.add(checkpoint.needs);
            cached.checkpoints.push(Checkpoint {
                frames: count - checkpoint.frames,
                needs,
                ..*checkpoint
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(register: u8, address: u64) -> Dependencies {
        let mut read = AddressesRead::NONE;
        read.add(address);
        Dependencies {
            registers: 1 << register,
            read,
        }
    }

    fn state() -> FrameState {
        FrameState {
            registers: Registers::default(),
            interrupted: false,
            by_frame_pointer: false,
        }
    }

    /// A walk of frames 16 bytes apart from this stack pointer up to 16,000, up to where it joins.
    fn walk(from: u64, guessed_at: u64, cached: &CachedUnwind) -> UnwindTrace {
        let mut trace = UnwindTrace::default();
        for at in (from..=16_000).step_by(16) {
            let joins = |it: &&Checkpoint| it.stack_pointer == at;
            if let Some(checkpoint) = cached.checkpoints.iter().find(joins) {
                trace.join(checkpoint);
                return trace;
            }
            trace.reach(at * 10, at, state);
            match at {
                16_000 => trace.end(needs(2, 0), false),
                _ => trace.leave(needs((at % 7) as u8, at + 8), at == guessed_at),
            }
        }
        trace
    }

    fn check(trace: &UnwindTrace, cached: &mut CachedUnwind, from: u64) {
        assert!(trace.is_cacheable());
        trace.keep(cached);
        let mut expected: Vec<_> = (from..=16_000).step_by(16).map(|at| at * 10).collect();
        expected.reverse();
        assert_eq!(cached.frames, expected);
        assert_eq!(cached.reads.len(), expected.len());
        assert!(cached.reads.is_sorted_by(|a, b| a >= b));
        for checkpoint in &cached.checkpoints {
            let at = checkpoint.stack_pointer;
            assert_eq!(expected[checkpoint.frames - 1], at * 10);
            let needs = checkpoint.needs;
            assert_eq!((needs.read.lowest, needs.read.highest), (0, 15_992));
            assert_eq!(needs.registers.count_ones(), 7, "{at}");
        }
    }

    #[test]
    fn walks_extend_what_they_join() {
        let mut cached = CachedUnwind::default();
        for (from, joins, checkpoints) in [
            (8_000, None, 8),
            (8_000, Some(8_000), 8),
            (6_400, Some(8_000), 10),
            (6_416, Some(7_424), 10),
            (9_600, Some(10_048), 7),
            (160, Some(9_600), 17),
        ] {
            let trace = walk(from, 0, &cached);
            let joined = trace.joined.map(|it| it.stack_pointer);
            assert_eq!(joined, joins, "{from}");
            check(&trace, &mut cached, from);
            assert_eq!(cached.checkpoints.len(), checkpoints, "{from}");
        }
    }

    #[test]
    fn nothing_is_joined_in_front_of_a_guess() {
        let mut cached = CachedUnwind::default();
        check(&walk(8_000, 12_000, &cached), &mut cached, 8_000);
        let first = cached.checkpoints.last().map(|it| it.stack_pointer);
        assert_eq!(first, Some(8_000 + 16 * 256));
    }

    #[test]
    fn what_is_spoiled_short_or_endless_is_not_kept() {
        let mut spoiled = walk(8_000, 0, &CachedUnwind::default());
        spoiled.mark_uncacheable();
        let short = walk(15_000, 0, &CachedUnwind::default());
        let mut endless = UnwindTrace::default();
        for at in 0..2 * CachedUnwind::MOST as u64 {
            endless.reach(at, at, state);
            endless.leave(needs(1, at), false);
        }
        for trace in [spoiled, short, endless, UnwindTrace::default()] {
            let mut cached = CachedUnwind::default();
            walk(8_000, 0, &cached).keep(&mut cached);
            assert_eq!(cached.frames.len(), 501);
            assert!(!trace.is_cacheable());
            trace.keep(&mut cached);
            assert!(cached.frames.is_empty() && cached.checkpoints.is_empty());
            assert!(trace.frames.len() <= CachedUnwind::MOST);
        }
    }
}
