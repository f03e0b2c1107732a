//! Call frame information: finds the entry for an address, and makes a rule of it.

mod expression;
mod index;
mod pages;
mod rows;

use std::ops::Range;

use gimli::{BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindSection, Vendor};
use prof_model::StackEnd;

pub(crate) use pages::{ReadFile, SectionBytes};
pub(crate) use rows::{Found, UnwindContext};

use crate::arch::RegisterLayout;
use crate::registers::Registers;
use crate::rule::Rule;
use index::Index;
use pages::Pages;

pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The bytes of a `.eh_frame` or `.debug_frame` section, and an index of its entries.
#[derive(Debug)]
pub(crate) struct CfiSection {
    bytes: SectionBytes,
    /// The pages that were read; `None`: all.
    pages: Option<Pages>,
    kind: Kind,
    bases: BaseAddresses,
    vendor: Vendor,
    index: Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    EhFrame,
    DebugFrame,
}

/// The memory and registers that CFI expressions may read.
pub(crate) trait FrameState {
    /// The registers of the frame.
    fn registers(&self) -> &Registers;
    /// One of them, by its DWARF number.
    fn register(&self, number: u16) -> Result<u64, StackEnd> {
        let value = u8::try_from(number)
            .ok()
            .and_then(|it| self.registers().get(it));
        value.ok_or_else(|| self.without_register())
    }
    /// Why one of them is not known.
    fn without_register(&self) -> StackEnd;
    /// A word of memory.
    fn read(&mut self, address: u64) -> Result<u64, StackEnd>;
}

impl CfiSection {
    /// A `.eh_frame` section of `size` bytes that begins at `file_offset`, indexed by
    /// `.eh_frame_hdr` (its address and bytes). Nothing is read yet. `None` if the index is
    /// unusable.
    pub(crate) fn indexed_eh_frame(
        (file_offset, size): (u64, usize),
        bases: &BaseAddresses,
        (header_address, header): (u64, Vec<u8>),
        vendor: Vendor,
    ) -> Option<Self> {
        let address = bases.eh_frame.section.unwrap_or(0);
        Some(Self {
            index: Index::from_header(header, header_address, address)?,
            bytes: vec![0; size].into(),
            pages: Some(Pages::unread(file_offset, size)),
            kind: Kind::EhFrame,
            bases: bases.clone(),
            vendor,
        })
    }

    /// A `.eh_frame` section, indexed by reading it through. `is_code` says which addresses are in
    /// executable segments: entries of others were discarded by the linker.
    pub(crate) fn eh_frame(
        bytes: Vec<u8>,
        bases: BaseAddresses,
        vendor: Vendor,
        is_code: &dyn Fn(u64) -> bool,
    ) -> Self {
        let section = EhFrame::new(&bytes, LittleEndian);
        let index = Index::build(&section, &bases, is_code);
        Self {
            bytes: bytes.into(),
            pages: None,
            kind: Kind::EhFrame,
            bases,
            vendor,
            index,
        }
    }

    /// A `.debug_frame` section, which has no index of its own.
    pub(crate) fn debug_frame(
        bytes: Vec<u8>,
        vendor: Vendor,
        is_code: &dyn Fn(u64) -> bool,
    ) -> Self {
        let bases = BaseAddresses::default();
        let mut section = DebugFrame::new(&bytes, LittleEndian);
        section.set_address_size(8);
        let index = Index::build(&section, &bases, is_code);
        Self {
            bytes: bytes.into(),
            pages: None,
            kind: Kind::DebugFrame,
            bases,
            vendor,
            index,
        }
    }

    /// Bytes of memory that it uses, with its index.
    pub(crate) fn size(&self) -> usize {
        let bytes = self.pages.as_ref().map_or(self.bytes.len(), Pages::size);
        bytes + self.index.size()
    }

    /// Reads the entries that may cover `address`, unless they were read before.
    pub(crate) fn read_entries(&mut self, address: u64, file: ReadFile<'_>) {
        if let Some(pages) = &mut self.pages {
            for offset in self.index.candidates(address) {
                pages.read_entry(offset, &mut self.bytes, file);
            }
        }
    }

    /// Reads everything that was not read before.
    pub(crate) fn read_all(&mut self, file: ReadFile<'_>) {
        if let Some(pages) = &mut self.pages {
            pages.read_all(&mut self.bytes, file);
        }
    }

    pub(crate) fn bytes(&self) -> SectionBytes {
        self.bytes.clone()
    }

    /// The addresses of the section and of the sections that it refers to.
    pub(crate) fn bases(&self) -> &BaseAddresses {
        &self.bases
    }

    /// The bytes of `.eh_frame_hdr`, if they serve as index.
    pub(crate) fn header(&self) -> Option<SectionBytes> {
        match &self.index {
            Index::Header { bytes, .. } => Some(bytes.clone()),
            Index::Built(_) => None,
        }
    }

    /// The address of `.eh_frame` by `.eh_frame_hdr`.
    pub(crate) fn eh_frame_address(header: &[u8], header_address: u64) -> Option<u64> {
        index::eh_frame_address(header, header_address)
    }

    /// The rule for the code at `address`, or `None` if no entry covers it.
    pub(crate) fn rule(
        &self,
        address: u64,
        context: &mut UnwindContext,
        layout: &RegisterLayout,
    ) -> Option<Found<Rule>> {
        match self.kind {
            Kind::EhFrame => {
                let section = self.as_eh_frame();
                self.with_row(&section, address, context, |row, fde| {
                    rows::compact(row, fde, layout)
                })
            }
            Kind::DebugFrame => {
                let section = self.as_debug_frame();
                self.with_row(&section, address, context, |row, fde| {
                    rows::compact(row, fde, layout)
                })
            }
        }
    }

    /// Evaluates the entry for `address` completely: the caller's registers, or `None` in them if
    /// the entry says that there is no caller.
    pub(crate) fn evaluate(
        &self,
        address: u64,
        context: &mut UnwindContext,
        layout: &RegisterLayout,
        state: &mut impl FrameState,
    ) -> Option<Found<Result<Registers, StackEnd>>> {
        match self.kind {
            Kind::EhFrame => {
                let section = self.as_eh_frame();
                self.with_row(&section, address, context, |row, _| {
                    rows::evaluate(row, &section, layout, state)
                })
            }
            Kind::DebugFrame => {
                let section = self.as_debug_frame();
                self.with_row(&section, address, context, |row, _| {
                    rows::evaluate(row, &section, layout, state)
                })
            }
        }
    }

    /// The addresses of the function that the entry for `address` describes.
    pub(crate) fn function(&self, address: u64) -> Option<Range<u64>> {
        let fde = match self.kind {
            Kind::EhFrame => self.fde(&self.as_eh_frame(), address),
            Kind::DebugFrame => self.fde(&self.as_debug_frame(), address),
        };
        fde.map(|fde| fde.initial_address()..fde.end_address())
    }

    fn with_row<'a, S, T>(
        &'a self,
        section: &S,
        address: u64,
        context: &mut UnwindContext,
        read: impl FnOnce(&rows::Row, &rows::Fde<'a>) -> T,
    ) -> Option<Found<T>>
    where
        S: UnwindSection<Bytes<'a>>,
    {
        let fde = self.fde(section, address)?;
        let row = fde
            .unwind_info_for_address(section, &self.bases, context, address)
            .ok()?;
        Some(Found {
            value: read(row, &fde),
            signal_frame: fde.is_signal_trampoline(),
        })
    }

    fn fde<'a, S>(&'a self, section: &S, address: u64) -> Option<rows::Fde<'a>>
    where
        S: UnwindSection<Bytes<'a>>,
    {
        self.index
            .candidates(address)
            .find_map(|offset| rows::fde_at(section, &self.bases, offset, address))
    }

    fn as_eh_frame(&self) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_vendor(self.vendor);
        section
    }

    fn as_debug_frame(&self) -> DebugFrame<Bytes<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(self.vendor);
        section
    }
}
