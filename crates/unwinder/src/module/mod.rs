//! What is kept of each module: its segments, its CFI sections, and the file for code bytes.

mod elf;
mod source;

use prof_model::{AddressSpace, BuildId, FileOffset, Mapping};

use crate::arch::Layout;
use crate::cfi::CfiSection;

use elf::{Headers, Section, SectionName, Segment};
pub(crate) use source::Source;

/// Why a module's tables are not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The file could not be opened or read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not a 64-bit little-endian ELF file.
    #[error("not a 64-bit ELF file")]
    NotElf,
    /// Its headers contradict its size or each other.
    #[error("the ELF headers are damaged")]
    Malformed,
    /// A table is larger than any real one.
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
    /// Where the kernel or the dynamic linker enters it; 0: nowhere.
    pub(crate) entry: u64,
}

#[derive(Debug)]
enum DebugFrame {
    Unread(Section),
    Read(Option<CfiSection>),
}

/// `.eh_frame` of the largest browsers takes 60 MB.
const TABLE_LIMIT: u64 = 512 << 20;

impl ModuleTables {
    /// Reads the tables of the module; `expected`: the build id it must have.
    pub(crate) fn load(
        source: Source,
        layout: &Layout,
        expected: Option<&BuildId>,
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
        let debug_frame = headers
            .section(SectionName::DebugFrame)
            .or_else(|| headers.section(SectionName::ZdebugFrame));
        Ok(Self {
            eh_frame: read_eh_frame(&source, &headers, layout),
            debug_frame: match debug_frame {
                Some(section) => DebugFrame::Unread(section.clone()),
                None => DebugFrame::Read(None),
            },
            entry: headers.entry,
            segments: headers.segments,
            source,
        })
    }

    /// The `.debug_frame` section, read on first use.
    pub(crate) fn debug_frame(&mut self, layout: &Layout) -> Option<&CfiSection> {
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

    /// What to add to a position in the file (wrapping) to get the address the tables speak of,
    /// for code in `mapping`, which is one of `space`.
    ///
    /// Segments need not start at page boundaries, but mappings do: two segments can share a page
    /// of the file, which is then mapped twice. Which segment a mapping is for is decided by what
    /// all of the module's mappings together say about where it was loaded.
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

    /// For each segment that `mapping` may be of: its bias, and how many bytes they share.
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

    /// Fills `page` with the code that is mapped from `address` on; returns how far. What is not
    /// code before that is zero.
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

fn read_eh_frame(source: &Source, headers: &Headers, layout: &Layout) -> Option<CfiSection> {
    let section = headers.section(SectionName::EhFrame);
    let header = match headers.section(SectionName::EhFrameHdr) {
        Some(section) => Some((section.file_offset, section.size, section.address)),
        None => headers
            .eh_frame_hdr
            .map(|segment| (segment.file_offset, segment.file_size, segment.address)),
    };
    let header = header.and_then(|(offset, size, address)| {
        let bytes = source.read_range(offset, size, TABLE_LIMIT).ok()?;
        Some((address, bytes))
    });
    let (offset, size, address) = match section {
        Some(section) => (section.file_offset, section.size, section.address),
        None => {
            // Without section headers, .eh_frame starts where its index says, and ends with a
            // zero word somewhere before the end of the segment.
            let (header_address, bytes) = header.as_ref()?;
            let address = CfiSection::eh_frame_address(bytes, *header_address)?;
            let segment = headers
                .segments
                .iter()
                .find(|segment| segment.holds_address(address))?;
            let skip = address - segment.address;
            let offset = segment.file_offset.checked_add(skip)?;
            (offset, segment.file_size - skip, address)
        }
    };
    let bytes = source.read_range(offset, size, TABLE_LIMIT).ok()?;
    let base = |name| headers.section(name).map_or(0, |section| section.address);
    let mut bases = gimli::BaseAddresses::default()
        .set_eh_frame(address)
        .set_text(base(SectionName::Text))
        .set_got(base(SectionName::Got));
    if let Some((header_address, _)) = &header {
        bases = bases.set_eh_frame_hdr(*header_address);
    }
    let is_code = |address| {
        let holds = |segment: &Segment| segment.executable && segment.holds_address(address);
        headers.segments.iter().any(holds)
    };
    Some(CfiSection::eh_frame(
        bytes,
        bases,
        header,
        layout.vendor,
        &is_code,
    ))
}

fn read_debug_frame(
    source: &Source,
    section: &Section,
    segments: &[Segment],
    layout: &Layout,
) -> Result<CfiSection, ModuleError> {
    let bytes = source.read_range(section.file_offset, section.size, TABLE_LIMIT)?;
    let bytes = decompress(section, bytes)?;
    let is_code = |address| {
        let holds = |segment: &Segment| segment.executable && segment.holds_address(address);
        segments.iter().any(holds)
    };
    Ok(CfiSection::debug_frame(bytes, layout.vendor, &is_code))
}

/// The section's bytes as they were before the linker compressed them.
fn decompress(section: &Section, bytes: Vec<u8>) -> Result<Vec<u8>, ModuleError> {
    use object::read::{CompressedData, CompressionFormat};
    /// `Elf64_Chdr`: type (u32), reserved (u32), size, alignment (u64 each).
    const HEADER: usize = 24;
    /// "ZLIB", then the size as a big-endian u64.
    const OLD_HEADER: usize = 12;
    let word = |at: usize| -> Option<[u8; 8]> { bytes.get(at..at + 8)?.try_into().ok() };
    let (format, size, skip) = if section.compressed {
        let kind = bytes.get(..4).ok_or(ModuleError::Malformed)?;
        let format = match kind {
            [1, 0, 0, 0] => CompressionFormat::Zlib,
            [2, 0, 0, 0] => CompressionFormat::Zstandard,
            _ => return Err(ModuleError::Malformed),
        };
        (format, word(8).map(u64::from_le_bytes), HEADER)
    } else if section.name == SectionName::ZdebugFrame && bytes.starts_with(b"ZLIB") {
        let size = word(4).map(u64::from_be_bytes);
        (CompressionFormat::Zlib, size, OLD_HEADER)
    } else {
        return Ok(bytes);
    };
    let (Some(uncompressed_size), Some(data)) = (size, bytes.get(skip..)) else {
        return Err(ModuleError::Malformed);
    };
    // Neither format makes more than about a thousand bytes of one.
    let plausible = (data.len() as u64)
        .saturating_mul(1100)
        .saturating_add(1 << 16);
    if uncompressed_size > TABLE_LIMIT.min(plausible) {
        return Err(ModuleError::TooLarge);
    }
    let data = CompressedData {
        format,
        data,
        uncompressed_size,
    };
    match data.decompress() {
        Ok(plain) => Ok(plain.into_owned()),
        Err(_) => Err(ModuleError::Malformed),
    }
}

/// The GNU build id note.
fn build_id(source: &Source, headers: &Headers) -> Option<BuildId> {
    const NOTES_LIMIT: u64 = 1 << 16;
    const NT_GNU_BUILD_ID: u32 = 3;
    headers.notes.iter().find_map(|segment| {
        let bytes = source
            .read_range(segment.file_offset, segment.file_size, NOTES_LIMIT)
            .ok()?;
        let mut rest = &bytes[..];
        while let Some((head, tail)) = rest.split_first_chunk::<12>() {
            let field = |at: usize| {
                u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
            };
            let padded = |size: u32| (size as usize).next_multiple_of(4);
            let (name_size, size) = (field(0), field(4));
            let name = tail.get(..name_size as usize)?;
            let content = tail.get(padded(name_size)..)?;
            if field(8) == NT_GNU_BUILD_ID && name == b"GNU\0" {
                return BuildId::new(content.get(..size as usize)?);
            }
            rest = content.get(padded(size)..)?;
        }
        None
    })
}

/// Where a code address of a process lies in a module.
pub(crate) fn elf_address(mapping: &Mapping, bias: u64, address: u64) -> u64 {
    let FileOffset(offset) = mapping.file_offset_of(prof_model::AbsoluteAddress(address));
    offset.wrapping_add(bias)
}
