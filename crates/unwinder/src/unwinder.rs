//! The unwinder: its state from sample to sample, and the entry to a walk.

use prof_model::{AbsoluteAddress, RegisterAbi, StackEnd, StackNote, UserRegisters};

use crate::arch::Architecture;
use crate::code::{KnownCode, ProcessCode};
use crate::entry::Entry;
use crate::frame::Frame;
use crate::frames::Frames;
use crate::memory::stack::{Block, Stack};
use crate::memory::target::{Memory, Target, UserState};
use crate::module::code_mapping::CodeMapping;
use crate::module::files::ModuleFiles;
use crate::module::store::ModuleStore;
use crate::registers::Registers;
use crate::rule::Rule;
use crate::step::lookup::find_rule;
use crate::walk::walk;

/// The most frames of a stack, which bounds the memory of a walk.
pub const FRAME_LIMIT: usize = 32_000;

/// Finds the callers of samples. Keeps the tables of each module, and the rules it has found, for
/// all processes; not tied to a thread.
pub struct Unwinder {
    code: KnownCode,
    block: Block,
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
        let modules = ModuleStore::new(Box::new(files));
        Self {
            code: KnownCode::new(architecture.layout(), modules),
            block: Block::default(),
        }
    }

    /// Limits the bytes of modules' unwind tables, except for those of the module that was read
    /// last.
    pub fn with_table_limit(mut self, bytes: usize) -> Self {
        self.code.modules.limit_bytes(bytes);
        self
    }

    /// Appends the frames of a sample's user stack to `frames`, innermost first.
    ///
    /// Frames are addresses to look up: the instruction pointer itself, then for each caller the
    /// return address minus 1 (a frame that a signal interrupted is an instruction pointer again).
    /// At most [`FRAME_LIMIT`] are appended; of a deeper stack the innermost and outermost ones.
    pub fn unwind(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        memory: &mut impl Memory,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        let layout = self.code.layout;
        let Some(first) = layout.registers(user.registers) else {
            return StackNote::new(StackEnd::NoUserState);
        };
        let sampled = Frame::sampled(first, layout);
        if user.registers.abi() == RegisterAbi::Bits32 {
            frames.push(sampled.program_counter());
            return StackNote::new(StackEnd::CompatMode);
        }
        let top = sampled.stack_pointer();
        let first = frames.len();
        let mut stack = Stack::new(user.dump, top, &mut self.block, memory);
        let unwound = unwind_in(&mut self.code, target, &sampled, &mut stack, frames);
        if unwound.end == StackEnd::Stale && stack.left_dump() {
            return StackNote {
                end: StackEnd::OtherStack,
                ..unwound
            };
        }
        if unwound.end != StackEnd::Stale || !stack.joined_live() {
            return unwound;
        }
        // A walk that failed in live memory that seemed to join may succeed in the stack of an
        // earlier sample.
        let second = frames.len();
        let mut stack = Stack::new(user.dump, top, &mut self.block, memory).distrusting_live();
        let again = unwind_in(&mut self.code, target, &sampled, &mut stack, frames);
        if !again.end.is_whole() {
            frames.truncate(second);
            return unwound;
        }
        frames.drain(first..second);
        again
    }

    /// Whether code at this address keeps a frame pointer there, which leads to its caller; `None`
    /// if that is unknown.
    pub fn keeps_frame_pointer(
        &mut self,
        target: &Target<'_>,
        address: AbsoluteAddress,
    ) -> Option<bool> {
        let layout = self.code.layout;
        let mut registers = Registers::default();
        registers.set(layout.program_counter, address.0);
        let mut code = ProcessCode::new(&mut self.code, target);
        let place = code.locate(address.0)?;
        let rule = find_rule(&mut code, &Frame::sampled(registers, layout), &place).rule;
        if layout.has_link_register() {
            return keeps_frame_record(&mut code, &place, address.0, &rule);
        }
        match rule {
            Rule::Compact(rule) if rule.cfa_register == layout.frame_pointer => Some(true),
            // Go keeps frame pointers, and its CFI does not use them.
            Rule::Compact(rule) if code.is_go(place.module) => {
                let at = place.code_address(address.0);
                let function = code.function(at)?;
                let mut read = code.reader(place.module);
                let (start, offset) = (function.start, rule.cfa_offset);
                (layout.architecture).has_frame_pointer(&mut read, start, at.address, offset)
            }
            Rule::Compact(_) => Some(false),
            _ => None,
        }
    }

    /// The registers to start with, given the user's registers of a sample (`saved`) and those of
    /// the instant itself, if they are known and it hit the kernel (`in_kernel`); see [`Entry`].
    pub fn entry(
        &self,
        saved: Option<&UserRegisters>,
        at_sample: Option<&UserRegisters>,
        in_kernel: bool,
    ) -> Entry {
        match at_sample {
            _ if !in_kernel => Entry::NotEntered,
            Some(at_sample) => {
                let architecture = self.code.layout.architecture;
                architecture.entry(saved, at_sample)
            }
            None => Entry::Saved,
        }
    }
}

/// Whether code at this address has stored a frame record to which the frame pointer leads: CFI
/// does not say so, where the record is at the bottom of the frame.
fn keeps_frame_record(
    code: &mut ProcessCode<'_>,
    place: &CodeMapping,
    address: u64,
    rule: &Rule,
) -> Option<bool> {
    let saves_nothing = match rule {
        Rule::Compact(rule) | Rule::Guess(rule) => rule.return_address.is_none(),
        Rule::FrameRecord => return Some(true),
        _ => return None,
    };
    if saves_nothing {
        return Some(false);
    }
    let at = place.code_address(address);
    let start = code.function(at).map(|function| function.start);
    let architecture = code.architecture();
    let mut read = code.reader(place.module);
    architecture.sets_frame_pointer(&mut read, start, at.address)
}

fn unwind_in<'w>(
    code: &'w mut KnownCode,
    target: &'w Target<'w>,
    sampled: &Frame,
    stack: &mut Stack<'w>,
    frames: &mut Vec<u64>,
) -> StackNote {
    let mut frames = Frames::new(frames, FRAME_LIMIT);
    let mut code = ProcessCode::new(code, target);
    let end = walk(sampled, &mut code, stack, &mut frames);
    frames.finish(end)
}
