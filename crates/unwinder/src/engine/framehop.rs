//! framehop as an engine: our modules and dumps in, its frames and our reasons out.

use std::collections::HashMap;

use framehop::{Error, ExplicitModuleSectionInfo, Module, Unwinder as _};
use prof_model::{Pid, RegisterAbi, StackEnd, StackNote, UserRegisters};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, PtrAuthMask, UnwindRegsAarch64 as Registers, UnwinderAarch64,
};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64};

use super::FrameEngine;
use crate::arch::{Architecture, RegisterLayout};
use crate::cfi::{CfiSection, SectionBytes};
use crate::frames::Frames;
use crate::memory::target::{StackDump, Target, UserState};
use crate::module::code_mapping::CodeMapping;
use crate::module::files::ModuleFiles;
use crate::module::store::ModuleStore;
use crate::unwinder::FRAME_LIMIT;
use crate::walk::STEPS;

#[cfg(target_arch = "aarch64")]
type Space = UnwinderAarch64<SectionBytes>;
#[cfg(not(target_arch = "aarch64"))]
type Space = UnwinderX86_64<SectionBytes>;

/// The most processes whose modules are known.
const SPACES: usize = 1024;

/// framehop, for processes of this machine.
///
/// It tracks only instruction, stack and frame pointer. If it finds no CFI or none that it
/// understands, it silently follows the frame pointer, whatever that register holds; so the end
/// that it reports need not be the end of the stack, nor is each of its frames code.
pub struct Framehop {
    layout: &'static RegisterLayout,
    modules: ModuleStore,
    /// One unwinder for each process, with the [version](prof_model::Process::version) of its
    /// mappings.
    spaces: HashMap<Pid, (u64, Space)>,
    cache: Cache,
}

impl Framehop {
    /// An engine which gets modules from `files`.
    pub fn new(files: impl ModuleFiles + Send + 'static) -> Self {
        let host = Architecture::host().unwrap_or(Architecture::X86_64);
        Self {
            layout: host.layout(),
            modules: ModuleStore::new(Box::new(files)),
            spaces: HashMap::new(),
            cache: Cache::new(),
        }
    }

    /// Adds the target's modules, unless they are known.
    fn prepare(&mut self, target: &Target<'_>) {
        let version = target.process.version();
        if (self.spaces.get(&target.pid)).is_some_and(|(known, _)| *known == version) {
            return;
        }
        if self.spaces.len() >= SPACES {
            self.spaces.clear();
        }
        let mut space = Space::new();
        let mappings = target.process.space().iter();
        for mapping in mappings.filter(|mapping| mapping.executable) {
            let place = CodeMapping::load(&mut self.modules, self.layout, target, mapping);
            let Some(tables) = self.modules.get(mapping.module) else {
                continue;
            };
            tables.read_all_entries();
            let info = match &tables.eh_frame {
                Some(section) => eh_frame(section),
                None => ExplicitModuleSectionInfo {
                    debug_frame: tables.debug_frame(self.layout).map(CfiSection::bytes),
                    ..Default::default()
                },
            };
            let path = target.modules[mapping.module].path.display().to_string();
            let range = mapping.start.0..mapping.end.0;
            space.add_module(Module::new(path, range, place.address(0), info));
        }
        self.spaces.insert(target.pid, (version, space));
        // Its keys are addresses and 16-bit counters, which wrap around.
        self.cache = Cache::new();
    }

    /// Walks to the end; returns why it ended.
    fn walk(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Frames<'_>,
    ) -> StackEnd {
        let UserState { registers, dump } = user;
        let Some((program_counter, first)) = self.first_registers(registers) else {
            return StackEnd::NoUserState;
        };
        if registers.abi() == RegisterAbi::Bits32 {
            frames.push(program_counter);
            return StackEnd::CompatMode;
        }
        self.prepare(target);
        let Some((_, space)) = self.spaces.get(&target.pid) else {
            return StackEnd::NoUserState;
        };
        let mut read = |address| dump.word(address).ok_or(());
        let mut walk = space.iter_frames(program_counter, first, &mut self.cache, &mut read);
        for _ in 0..STEPS {
            match walk.next() {
                Ok(Some(frame)) => frames.push(frame.address_for_lookup()),
                Ok(None) => return StackEnd::Root,
                Err(error) => return end(error, dump),
            }
        }
        StackEnd::FrameLimit
    }

    /// The program counter, and the first registers.
    fn first_registers(&self, sample: &UserRegisters) -> Option<(u64, Registers)> {
        let layout = self.layout;
        let known = layout.registers(sample)?;
        let program_counter = known.get(layout.program_counter)?;
        let stack_pointer = known.get(layout.stack_pointer)?;
        let frame_pointer = known.get(layout.frame_pointer).unwrap_or(0);
        #[cfg(target_arch = "aarch64")]
        let first = Registers::new_with_ptr_auth_mask(
            PtrAuthMask(layout.address_mask),
            known.get(layout.return_address).unwrap_or(0),
            stack_pointer,
            frame_pointer,
        );
        #[cfg(not(target_arch = "aarch64"))]
        let first = Registers::new(program_counter, stack_pointer, frame_pointer);
        Some((program_counter, first))
    }
}

impl FrameEngine for Framehop {
    fn unwind_dump(
        &mut self,
        target: &Target<'_>,
        user: &UserState<'_>,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        let mut frames = Frames::new(frames, FRAME_LIMIT);
        let end = self.walk(target, user, &mut frames);
        frames.finish(end)
    }
}

fn eh_frame(section: &CfiSection) -> ExplicitModuleSectionInfo<SectionBytes> {
    let bases = section.bases();
    // Only their start addresses matter.
    let range = |base: Option<u64>| base.map(|start| start..start);
    ExplicitModuleSectionInfo {
        text_svma: range(bases.eh_frame.text),
        got_svma: range(bases.eh_frame.data),
        eh_frame_svma: range(bases.eh_frame.section),
        eh_frame: Some(section.bytes()),
        eh_frame_hdr_svma: range(bases.eh_frame_hdr.section),
        eh_frame_hdr: section.header(),
        ..Default::default()
    }
}

/// The reason nearest to an error of framehop.
fn end(error: Error, dump: &StackDump<'_>) -> StackEnd {
    match error {
        Error::CouldNotReadStack(address) => dump.missing(address),
        Error::FramepointerUnwindingMovedBackwards => StackEnd::FramePointersEnded,
        Error::DidNotAdvance => StackEnd::Loop,
        Error::ReturnAddressIsNull => StackEnd::NotCode,
        Error::IntegerOverflow => StackEnd::NoUnwindInfo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_nearest_reason() {
        let dump = |full| StackDump {
            start: 0x7000,
            bytes: &[0; 16],
            full,
        };
        let check = |error, full, expected| assert_eq!(end(error, &dump(full)), expected);
        let unread = Error::CouldNotReadStack;
        check(unread(0x7010), true, StackEnd::TruncatedDump);
        check(unread(0x7010), false, StackEnd::UnreadableMemory);
        check(unread(0x10), true, StackEnd::UnreadableMemory);
        let backwards = Error::FramepointerUnwindingMovedBackwards;
        check(backwards, true, StackEnd::FramePointersEnded);
        check(Error::DidNotAdvance, true, StackEnd::Loop);
        check(Error::ReturnAddressIsNull, true, StackEnd::NotCode);
        check(Error::IntegerOverflow, true, StackEnd::NoUnwindInfo);
    }
}
