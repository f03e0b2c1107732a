//! The unwinder: what it keeps from sample to sample, and the entrance to a walk.

use prof_model::{ModuleId, RegisterAbi, StackEnd, UserRegisters};

use crate::arch::{Architecture, Layout};
use crate::cache::code_facts::{Candidates, CodeFacts};
use crate::cache::rule_cache::RuleCache;
use crate::cfi::UnwindContext;
use crate::edges::KnownEdges;
use crate::entry::Entry;
use crate::frames::Frames;
use crate::memory::stack::{Block, Stack};
use crate::memory::target::{Memory, StackDump, Target, Unwound};
use crate::module::ModuleError;
use crate::module::files::ModuleFiles;
use crate::module::store::ModuleStore;
use crate::rule::CompactRule;
use crate::walk::Walk;

/// The most frames that a stack is given: with kernel frames and the rest of the record it stays
/// within the 65,535 bytes that a perf.data record can have.
pub const FRAME_LIMIT: usize = 7_900;

/// Finds the callers of samples. Keeps what it read of each module, and the rules it worked out,
/// for all processes; not tied to a thread.
pub struct Unwinder {
    pub(crate) layout: &'static Layout,
    pub(crate) modules: ModuleStore,
    pub(crate) cache: RuleCache,
    pub(crate) candidates: CodeFacts<Candidates>,
    /// Whether threads start there.
    pub(crate) entries: CodeFacts<bool>,
    pub(crate) edges: KnownEdges,
    pub(crate) trampolines: CodeFacts<CompactRule>,
    pub(crate) context: UnwindContext,
    block: Block,
}

/// What is unwound.
struct Sample<'a> {
    target: &'a Target<'a>,
    registers: &'a UserRegisters,
    stack: StackDump<'a>,
    /// Whether the live target's memory may go on from the dump.
    trusts_live: bool,
}

impl Unwinder {
    /// An unwinder for processes of this machine, which gets modules from `files`.
    pub fn new(files: impl ModuleFiles + Send + 'static) -> Self {
        let host = Architecture::host().unwrap_or(Architecture::X86_64);
        Self::for_architecture(host, files)
    }

    /// An unwinder for recordings of a machine of this architecture.
    pub fn for_architecture(
        architecture: Architecture,
        files: impl ModuleFiles + Send + 'static,
    ) -> Self {
        Self {
            layout: architecture.layout(),
            modules: ModuleStore::new(Box::new(files)),
            cache: RuleCache::new(),
            candidates: CodeFacts::default(),
            entries: CodeFacts::default(),
            edges: KnownEdges::new(),
            trampolines: CodeFacts::default(),
            context: UnwindContext::new(),
            block: Block::default(),
        }
    }

    /// Appends the frames of a sample's user stack to `frames`, innermost first.
    ///
    /// Frames are addresses to look up: the instruction pointer itself, then for each caller the
    /// return address minus 1 (a frame that a signal interrupted is an instruction pointer again).
    /// At most [`FRAME_LIMIT`] are appended; of a deeper stack the innermost and outermost ones.
    pub fn unwind(
        &mut self,
        target: &Target<'_>,
        registers: &UserRegisters,
        stack: &StackDump<'_>,
        memory: &mut impl Memory,
        frames: &mut Vec<u64>,
    ) -> Unwound {
        let sample = Sample {
            target,
            registers,
            stack: *stack,
            trusts_live: true,
        };
        let first = frames.len();
        let unwound = self.walk(&sample, memory, frames);
        if unwound.end != StackEnd::Stale || !self.block.joins_live {
            return unwound;
        }
        // What went wrong in memory that seemed to join may go well in what was there earlier.
        let second = frames.len();
        let sample = Sample {
            trusts_live: false,
            ..sample
        };
        let again = self.walk(&sample, memory, frames);
        if !again.end.is_whole() {
            frames.truncate(second);
            return unwound;
        }
        frames.drain(first..second);
        again
    }

    fn walk(
        &mut self,
        sample: &Sample<'_>,
        memory: &mut dyn Memory,
        frames: &mut Vec<u64>,
    ) -> Unwound {
        let mut frames = Frames::new(frames, FRAME_LIMIT);
        let mut block = std::mem::take(&mut self.block);
        let registers = sample.registers;
        let (end, remote_read) = match self.layout.registers(registers) {
            None => (StackEnd::NoUserState, 0),
            Some(first) if registers.abi() == RegisterAbi::Bits32 => {
                frames.push(first.get(self.layout.program_counter).unwrap_or(0));
                (StackEnd::CompatMode, 0)
            }
            Some(first) => {
                let top = first.get(self.layout.stack_pointer);
                let top = top.unwrap_or(sample.stack.start);
                let stack = Stack::new(sample.stack, top, &mut block, memory);
                let stack = match sample.trusts_live {
                    true => stack,
                    false => stack.distrusting_live(),
                };
                Walk::new(self, sample.target, first, stack).run(&mut frames)
            }
        };
        let (elided, elided_at) = frames.finish();
        self.block = block;
        Unwound {
            end,
            remote_read,
            elided,
            elided_at,
        }
    }

    /// Which registers to begin with, given the user's that came with a sample (`saved`) and those
    /// of the instant itself, if they are known and it hit the kernel (`in_kernel`); see [`Entry`].
    pub fn entry(
        &self,
        saved: Option<&UserRegisters>,
        at_sample: Option<&UserRegisters>,
        in_kernel: bool,
    ) -> Entry {
        match at_sample {
            Some(at_sample) if in_kernel => self.layout.architecture.entry(saved, at_sample),
            _ => Entry::Saved,
        }
    }

    /// Why a module's tables could not be read, if they were needed and could not.
    pub fn module_error(&self, module: ModuleId) -> Option<&ModuleError> {
        self.modules.error(module)
    }
}
