//! The code of the unwound process, and the facts known about it.

pub(crate) mod patterns;

use std::ops::Range;

use prof_model::{AbsoluteAddress, ModuleId};

use crate::arch::{Architecture, RegisterLayout};
use crate::cache::code_facts::{Candidates, CodeFacts, RunTimeFacts};
use crate::cache::known_edges::KnownEdges;
use crate::cache::rule_cache::RuleCache;
use crate::cfi::UnwindContext;
use crate::memory::target::Target;
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::module::store::ModuleStore;
use crate::rule::CompactRule;

/// The most mappings to remember during a walk.
const RECENT: usize = 4;

/// The facts known about the code of all processes.
pub(crate) struct KnownCode {
    pub(crate) layout: &'static RegisterLayout,
    pub(crate) modules: ModuleStore,
    pub(crate) rules: RuleCache,
    pub(crate) candidates: CodeFacts<Candidates>,
    /// Whether threads start at an address.
    pub(crate) thread_starts: CodeFacts<bool>,
    pub(crate) edges: KnownEdges,
    pub(crate) trampolines: CodeFacts<CompactRule>,
    /// Run-time code that is none of them: reading it from the target would take longer than all
    /// other steps of a stack.
    pub(crate) no_trampolines: RunTimeFacts,
    /// Rules for run-time code without unwind tables.
    pub(crate) stubs: CodeFacts<CompactRule>,
    pub(crate) cfi: UnwindContext,
}

impl KnownCode {
    pub(crate) fn new(layout: &'static RegisterLayout, modules: ModuleStore) -> Self {
        Self {
            layout,
            modules,
            rules: RuleCache::new(),
            candidates: CodeFacts::default(),
            thread_starts: CodeFacts::default(),
            edges: KnownEdges::default(),
            trampolines: CodeFacts::default(),
            no_trampolines: RunTimeFacts::default(),
            stubs: CodeFacts::default(),
            cfi: UnwindContext::new(),
        }
    }
}

/// The code of one process.
pub(crate) struct ProcessCode<'w> {
    pub(crate) known: &'w mut KnownCode,
    pub(crate) target: &'w Target<'w>,
    /// The mappings used last.
    recent: [Option<CodeMapping>; RECENT],
    next: usize,
}

impl<'w> ProcessCode<'w> {
    pub(crate) fn new(known: &'w mut KnownCode, target: &'w Target<'w>) -> Self {
        Self {
            known,
            target,
            recent: [None; RECENT],
            next: 0,
        }
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.known.layout.architecture
    }

    /// The mapping of code at `address`, if it was used recently.
    #[inline]
    pub(crate) fn recent(&self, address: u64) -> Option<&CodeMapping> {
        let mut recent = self.recent.iter().flatten();
        recent.find(|place| place.holds(address))
    }

    /// The mapping of code at `address`.
    pub(crate) fn locate(&mut self, address: u64) -> Option<CodeMapping> {
        if let Some(place) = self.recent(address) {
            return Some(*place);
        }
        let mapping = self.target.process.space().find(AbsoluteAddress(address))?;
        if !mapping.executable {
            return None;
        }
        let KnownCode {
            modules, layout, ..
        } = &mut *self.known;
        let place = CodeMapping::load(modules, layout, self.target, mapping);
        if let Some(slot) = self.recent.get_mut(self.next) {
            *slot = Some(place);
        }
        self.next = (self.next + 1) % RECENT;
        Some(place)
    }

    /// The code before and from `target` on.
    pub(crate) fn around<'b>(
        &mut self,
        place: &CodeMapping,
        target: u64,
        before: usize,
        bytes: &'b mut [u8],
    ) -> Option<(&'b [u8], &'b [u8])> {
        if !place.has_tables {
            return None;
        }
        let first = place.elf_address(target).checked_sub(before as u64)?;
        let count = self.known.modules.read_code(place.module, first, bytes);
        bytes.get(..count)?.split_at_checked(before)
    }

    /// Reads a module's code by its own addresses.
    pub(crate) fn reader(
        &mut self,
        module: ModuleId,
    ) -> impl FnMut(u64, &mut [u8]) -> usize + use<'_> {
        let modules = &mut self.known.modules;
        move |address, buffer| modules.read_code(module, address, buffer)
    }

    /// The bounds of the function at an address, by `.eh_frame` or a `.debug_frame` that has been
    /// read.
    pub(crate) fn function(&mut self, at: CodeAddress) -> Option<Range<u64>> {
        let tables = self.known.modules.get(at.module)?;
        tables.read_entries(at.address);
        let sections = [tables.eh_frame.as_ref(), tables.read_debug_frame()];
        (sections.into_iter().flatten()).find_map(|cfi| cfi.function(at.address))
    }

    /// The entry point of a module; 0 if it has none.
    pub(crate) fn entry(&mut self, module: ModuleId) -> u64 {
        let tables = self.known.modules.get(module);
        tables.map_or(0, |tables| tables.entry)
    }

    /// Whether a module is a Go program.
    pub(crate) fn is_go(&mut self, module: ModuleId) -> bool {
        let tables = self.known.modules.get(module);
        tables.is_some_and(|tables| tables.is_go)
    }
}
