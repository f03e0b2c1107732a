//! A mapping of code, with its translation to addresses of the module's file.

use prof_model::{Mapping, ModuleId, ModuleKind};

use crate::arch::RegisterLayout;
use crate::memory::target::Target;
use crate::module::elf_address;
use crate::module::store::ModuleStore;

/// A place in code: an address in a module's file; of run-time code, in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodeAddress {
    pub(crate) module: ModuleId,
    pub(crate) address: u64,
}

/// A mapping of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeMapping {
    start: u64,
    end: u64,
    pub(crate) module: ModuleId,
    /// The (wrapping) difference from addresses of the process to addresses in the module's tables.
    bias: u64,
    /// Whether the module's file could be read.
    pub(crate) has_tables: bool,
    /// Whether its file could not be opened, or was another one.
    pub(crate) lacks_file: bool,
}

impl CodeMapping {
    /// Loads the tables of `mapping`, one of the target's, unless they are loaded.
    pub(crate) fn load(
        modules: &mut ModuleStore,
        layout: &RegisterLayout,
        target: &Target<'_>,
        mapping: &Mapping,
    ) -> Self {
        let bias = modules
            .load(target.pid, target.modules, mapping, layout)
            .and_then(|tables| match target.modules[mapping.module].kind {
                // Mapped completely from its first byte, whatever offset the kernel reports.
                ModuleKind::Vdso => Some(mapping.file_offset.0.wrapping_neg()),
                _ => tables.address_bias(mapping, target.process.space()),
            });
        Self {
            start: mapping.start.0,
            end: mapping.end.0,
            module: mapping.module,
            bias: bias.map_or(0, |bias| elf_address(mapping, bias, 0)),
            has_tables: bias.is_some(),
            lacks_file: modules.lacks_file(mapping.module),
        }
    }

    /// An address in this mapping as the module's tables have it; unchanged without tables.
    #[inline]
    pub(crate) fn elf_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    /// The same, with its module.
    #[inline]
    pub(crate) fn code_address(&self, address: u64) -> CodeAddress {
        CodeAddress {
            module: self.module,
            address: self.elf_address(address),
        }
    }

    /// The address in the process for an address of the module's tables.
    pub(crate) fn address(&self, elf_address: u64) -> u64 {
        elf_address.wrapping_sub(self.bias)
    }

    #[inline]
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}
