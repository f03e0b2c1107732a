//! The data kept of each module: its segments, its CFI sections, and the file for code bytes.

pub(crate) mod code_mapping;
pub(crate) mod files;
pub(crate) mod store;

mod elf;
mod go;
mod greenlets;
mod load;
mod source;

use std::ops::Range;
use std::path::Path;

use prof_model::{AddressSpace, BuildId, FileOffset, Mapping};

use crate::arch::RegisterLayout;
use crate::cfi::CfiSection;

use elf::{Headers, Section, SectionName, Segment};
use load::{build_id, read_debug_frame, read_eh_frame, size_of_tables};
pub(crate) use source::Source;

/// Why a module's tables are unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModuleError {
    /// The file could not be opened or read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not a 64-bit little-endian ELF file.
    #[error("not a 64-bit ELF file")]
    NotElf,
    /// Its headers contradict its size or each other.
    #[error("the ELF headers are damaged")]
    Malformed,
    /// A table is implausibly large.
    #[error("a table is unreasonably large")]
    TooLarge,
    /// It is made for another processor.
    #[error("made for another processor architecture")]
    WrongArchitecture,
    /// It is another build than the one that ran.
    #[error("the build id differs from that of the code that ran: rebuilt since?")]
    BuildIdDiffers,
}

/// A module's segments and unwind tables.
#[derive(Debug)]
pub(crate) struct ModuleTables {
    source: Source,
    segments: Vec<Segment>,
    /// `.eh_frame`, which is there at run time.
    pub(crate) eh_frame: Option<CfiSection>,
    /// `.debug_frame`, only read once `.eh_frame` has no answer.
    debug_frame: DebugFrame,
    /// The address where the kernel or the dynamic linker enters it; 0: none.
    pub(crate) entry: u64,
    /// The code that greenlets start with.
    greenlet_starts: Vec<Range<u64>>,
    /// Whether it is a Go program.
    pub(crate) is_go: bool,
    /// The bytes of the tables that are read, now or on first use.
    pub(crate) bytes_read: u64,
}

#[derive(Debug)]
enum DebugFrame {
    Unread(Section),
    Read(Option<CfiSection>),
}

impl ModuleTables {
    /// Reads the tables of the module at this path, at most so many bytes; `expected`: the build id
    /// it must have.
    pub(crate) fn load(
        source: Source,
        path: &Path,
        layout: &RegisterLayout,
        expected: Option<&BuildId>,
        most: u64,
    ) -> Result<Self, ModuleError> {
        let headers = Headers::read(&source)?;
        if headers.machine != layout.machine {
            return Err(ModuleError::WrongArchitecture);
        }
        if let (Some(expected), Some(found)) = (expected, build_id(&source, &headers))
            && *expected != found
        {
            return Err(ModuleError::BuildIdDiffers);
        }
        let bytes_read = size_of_tables(&headers);
        if bytes_read > most {
            return Err(ModuleError::TooLarge);
        }
        let debug_frame = headers
            .section(SectionName::DebugFrame)
            .or_else(|| headers.section(SectionName::ZdebugFrame));
        Ok(Self {
            eh_frame: read_eh_frame(&source, &headers, layout, most),
            debug_frame: match debug_frame {
                Some(section) => DebugFrame::Unread(section.clone()),
                None => DebugFrame::Read(None),
            },
            entry: headers.entry,
            greenlet_starts: match greenlets::may_be(path) {
                true => greenlets::starts(&source, &headers),
                false => Vec::new(),
            },
            is_go: go::is_program(&source, &headers),
            segments: headers.segments,
            source,
            bytes_read,
        })
    }

    /// Reads the entries of `.eh_frame` that may cover `address`, before they are used.
    pub(crate) fn read_entries(&mut self, address: u64) {
        let Self {
            source, eh_frame, ..
        } = self;
        if let Some(section) = eh_frame {
            section.read_entries(address, &|at, page| _ = source.read(at, page));
        }
    }

    /// Reads all entries of `.eh_frame`.
    pub(crate) fn read_all_entries(&mut self) {
        let Self {
            source, eh_frame, ..
        } = self;
        if let Some(section) = eh_frame {
            section.read_all(&|at, page| _ = source.read(at, page));
        }
    }

    /// The `.debug_frame` section, read on first use.
    pub(crate) fn debug_frame(&mut self, layout: &RegisterLayout) -> Option<&CfiSection> {
        if let DebugFrame::Unread(section) = &self.debug_frame {
            let read = read_debug_frame(&self.source, section, &self.segments, layout);
            self.debug_frame = DebugFrame::Read(read.ok());
        }
        match &self.debug_frame {
            DebugFrame::Read(section) => section.as_ref(),
            DebugFrame::Unread(_) => None,
        }
    }

    /// The `.debug_frame` section if it has been read.
    pub(crate) fn read_debug_frame(&self) -> Option<&CfiSection> {
        match &self.debug_frame {
            DebugFrame::Read(section) => section.as_ref(),
            DebugFrame::Unread(_) => None,
        }
    }

    /// Whether the `.debug_frame` section was looked for in vain.
    pub(crate) fn lacks_debug_frame(&self) -> bool {
        matches!(self.debug_frame, DebugFrame::Read(None))
    }

    /// Whether a greenlet starts with the code at this address: it has no caller.
    pub(crate) fn starts_greenlet(&self, address: u64) -> bool {
        let mut starts = self.greenlet_starts.iter();
        starts.any(|range| range.contains(&address))
    }

    /// Bytes of memory that the tables use.
    pub(crate) fn size(&self) -> usize {
        let sections = [self.eh_frame.as_ref(), self.read_debug_frame()];
        sections.into_iter().flatten().map(CfiSection::size).sum()
    }

    /// The (wrapping) difference from positions in the file to addresses in the tables, for code in
    /// `mapping`, which is one of `space`.
    ///
    /// Segments need not start at page boundaries, but mappings do: two segments can share a page
    /// of the file, which is then mapped twice. The segment of a mapping follows from the load
    /// address that all of the module's mappings together imply.
    pub(crate) fn address_bias(&self, mapping: &Mapping, space: &AddressSpace) -> Option<u64> {
        let mut candidates = self.biases(mapping);
        let (first, _) = candidates.next()?;
        if candidates.all(|(bias, _)| bias == first) {
            return Some(first);
        }
        let load_address = |mapping: &Mapping, bias| elf_address(mapping, bias, 0).wrapping_neg();
        let agreeing = |bias| {
            let load = load_address(mapping, bias);
            space
                .iter()
                .filter(|other| other.module == mapping.module)
                .filter(|other| {
                    let mut biases = self.biases(other);
                    biases.any(|(bias, _)| load_address(other, bias) == load)
                })
                .count()
        };
        self.biases(mapping)
            .max_by_key(|&(bias, overlap)| (agreeing(bias), overlap))
            .map(|(bias, _)| bias)
    }

    /// For each segment that `mapping` may belong to: its bias, and how many bytes they share.
    fn biases(&self, mapping: &Mapping) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = mapping.file_offset.0;
        let length = mapping.end.0.wrapping_sub(mapping.start.0);
        let last = first.saturating_add(length);
        let executable = mapping.executable;
        self.segments
            .iter()
            .filter(move |segment| segment.executable || !executable)
            .filter_map(move |segment| {
                let start = segment.file_offset.max(first);
                let end = segment.file_offset.saturating_add(segment.file_size);
                let overlap = end.min(last).saturating_sub(start);
                let bias = segment.address.wrapping_sub(segment.file_offset);
                (overlap > 0).then_some((bias, overlap))
            })
    }

    /// Fills `page` with the code mapped from `address` on; returns how many bytes. Bytes that are
    /// not code are zero.
    pub(crate) fn read_code_page(&self, address: u64, page: &mut [u8]) -> usize {
        let size = page.len() as u64;
        let overlaps = |segment: &&Segment| {
            segment.executable
                && segment.address < address.saturating_add(size)
                && address < segment.address.saturating_add(segment.file_size)
        };
        let Some(segment) = self.segments.iter().find(overlaps) else {
            return 0;
        };
        let lead = segment.address.saturating_sub(address);
        let skip = address.saturating_sub(segment.address);
        let count = (size - lead).min(segment.file_size - skip);
        page.fill(0);
        let (lead, end) = (lead as usize, (lead + count) as usize);
        let Some(part) = page.get_mut(lead..end) else {
            return 0;
        };
        let offset = segment.file_offset.saturating_add(skip);
        lead + self.source.read(offset, part).unwrap_or(0)
    }
}

/// The address in a module for a code address of a process.
pub(crate) fn elf_address(mapping: &Mapping, bias: u64, address: u64) -> u64 {
    let FileOffset(offset) = mapping.file_offset_of(prof_model::AbsoluteAddress(address));
    offset.wrapping_add(bias)
}
