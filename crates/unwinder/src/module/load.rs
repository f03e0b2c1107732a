//! Reads the unwind tables from a module's file.

use object::LittleEndian as LE;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::NoteIterator;
use prof_model::BuildId;

use super::ModuleError;
use super::elf::{Headers, Section, SectionName, Segment};
use super::files::TABLE_LIMIT;
use super::source::Source;
use crate::arch::RegisterLayout;
use crate::cfi::CfiSection;

/// The bytes of the tables that are read, now or on first use.
pub(super) fn size_of_tables(headers: &Headers) -> u64 {
    let size = |name| headers.section(name).map(|section| section.size);
    let index = size(SectionName::EhFrameHdr);
    let index = index.or(headers.eh_frame_hdr.map(|segment| segment.file_size));
    // Without an index, all entries are read.
    let frames = index.or(size(SectionName::EhFrame));
    let debug = [SectionName::DebugFrame, SectionName::ZdebugFrame].map(size);
    let sizes = debug.into_iter().chain([frames]).flatten();
    sizes.fold(0, u64::saturating_add)
}

pub(super) fn read_eh_frame(
    source: &Source,
    headers: &Headers,
    layout: &RegisterLayout,
    most: u64,
) -> Option<CfiSection> {
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
            // Without section headers, .eh_frame starts at the address in its index, and ends with
            // a zero word before the end of the segment.
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
    let base = |name| headers.section(name).map_or(0, |section| section.address);
    let mut bases = gimli::BaseAddresses::default()
        .set_eh_frame(address)
        .set_text(base(SectionName::Text))
        .set_got(base(SectionName::Got));
    if let Some((header_address, _)) = &header {
        bases = bases.set_eh_frame_hdr(*header_address);
    }
    let indexed = header.and_then(|header| {
        let size = source.check_range(offset, size, TABLE_LIMIT).ok()?;
        CfiSection::indexed_eh_frame((offset, size), &bases, header, layout.vendor)
    });
    if indexed.is_some() {
        return indexed;
    }
    let bytes = source.read_range(offset, size, most).ok()?;
    let is_code = |address| {
        let holds = |segment: &Segment| segment.executable && segment.holds_address(address);
        headers.segments.iter().any(holds)
    };
    Some(CfiSection::eh_frame(bytes, bases, layout.vendor, &is_code))
}

pub(super) fn read_debug_frame(
    source: &Source,
    section: &Section,
    segments: &[Segment],
    layout: &RegisterLayout,
) -> Result<CfiSection, ModuleError> {
    let bytes = source.read_range(section.file_offset, section.size, TABLE_LIMIT)?;
    let bytes = decompress(section, bytes)?;
    let is_code = |address| {
        let holds = |segment: &Segment| segment.executable && segment.holds_address(address);
        segments.iter().any(holds)
    };
    Ok(CfiSection::debug_frame(bytes, layout.vendor, &is_code))
}

/// Decompresses the section's bytes.
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
    // Neither format expands by more than about a thousand.
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
pub(super) fn build_id(source: &Source, headers: &Headers) -> Option<BuildId> {
    const NOTES_LIMIT: u64 = 1 << 16;
    headers.notes.iter().find_map(|segment| {
        let bytes = source
            .read_range(segment.file_offset, segment.file_size, NOTES_LIMIT)
            .ok()?;
        let notes = NoteIterator::<FileHeader64<LE>>::new(LE, 4, &bytes).ok()?;
        let mut notes = notes.map_while(Result::ok);
        let found =
            notes.find(|it| it.name() == ELF_NOTE_GNU && it.n_type(LE) == NT_GNU_BUILD_ID)?;
        BuildId::new(found.desc())
    })
}
