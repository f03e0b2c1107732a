//! Where a walk's addresses lie.

use prof_model::{AbsoluteAddress, ModuleId, ModuleKind};

use crate::memory::target::Target;
use crate::module::elf_address;
use crate::unwinder::Unwinder;
use crate::walk::{PLACES, Walk};

/// A mapping of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeMapping {
    start: u64,
    end: u64,
    pub(crate) module: ModuleId,
    /// What to add (wrapping) to an address of the process to get that of the module's tables.
    bias: u64,
    /// Whether the module's file could be read.
    pub(crate) has_tables: bool,
}

impl CodeMapping {
    /// An address in this mapping as the module's tables have it; without tables, as is.
    #[inline]
    pub(crate) fn elf_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    /// Where an address of the module's tables is in the process.
    pub(crate) fn address(&self, elf_address: u64) -> u64 {
        elf_address.wrapping_sub(self.bias)
    }

    #[inline]
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

impl Walk<'_> {
    /// The mapping of code at `address`.
    pub(crate) fn locate(&mut self, address: u64) -> Option<CodeMapping> {
        let known = |place: &&Option<CodeMapping>| place.is_some_and(|place| place.holds(address));
        if let Some(place) = self.places.iter().find(known) {
            return *place;
        }
        let mapping = self.target.process.space().find(AbsoluteAddress(address))?;
        if !mapping.executable {
            return None;
        }
        let Unwinder {
            modules, layout, ..
        } = &mut *self.unwinder;
        let Target {
            pid,
            modules: table,
            ..
        } = *self.target;
        let space = self.target.process.space();
        let bias = modules
            .load(pid, table, mapping, layout)
            .and_then(|tables| match table[mapping.module].kind {
                // Mapped as a whole from its first byte, whatever offset the kernel reports.
                ModuleKind::Vdso => Some(mapping.file_offset.0.wrapping_neg()),
                _ => tables.address_bias(mapping, space),
            });
        let place = CodeMapping {
            start: mapping.start.0,
            end: mapping.end.0,
            module: mapping.module,
            bias: bias.map_or(0, |bias| elf_address(mapping, bias, 0)),
            has_tables: bias.is_some(),
        };
        if let Some(slot) = self.places.get_mut(self.next_place) {
            *slot = Some(place);
        }
        self.next_place = (self.next_place + 1) % PLACES;
        Some(place)
    }

    /// Whether the sample hit `exec` in the kernel: the registers are still those of a program
    /// that is gone or was never known, and say nothing about the new one.
    pub(crate) fn is_between_programs(&mut self) -> bool {
        let mut mappings = self.target.process.space().iter();
        let knows_code = mappings.any(|mapping| mapping.executable);
        let at = self.program_counter();
        !knows_code || (self.stack.is_empty() && self.locate(at).is_none())
    }
}
