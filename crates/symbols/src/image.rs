//! One ELF file: its segments, sections and build id.

use std::borrow::Cow;

use object::{Object, ObjectSection, ObjectSegment, SegmentFlags, elf};
use prof_model::{BuildId, ElfAddress, FileOffset};

/// A parsed ELF file.
pub(crate) struct Image<'data> {
    object: object::File<'data>,
    segments: Vec<Segment>,
}

/// A loadable segment (`PT_LOAD`).
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
    executable: bool,
}

/// The smallest page: mappings are cut at multiples of it.
const PAGE: u64 = 4096;
/// Compressed sections that claim to be larger are refused, in bytes.
const MAX_SECTION: u64 = 4 << 30;
/// So are those that claim a better ratio than deflate can reach.
const MAX_RATIO: u64 = 1032;

impl<'data> Image<'data> {
    /// Parses the headers.
    pub(crate) fn parse(bytes: &'data [u8]) -> Result<Self, object::Error> {
        let object = object::File::parse(bytes)?;
        let segments = object
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                Segment {
                    address: segment.address(),
                    offset,
                    size,
                    executable: matches!(
                        segment.flags(),
                        SegmentFlags::Elf { p_flags, .. } if p_flags.0 & elf::PF_X.0 != 0
                    ),
                }
            })
            .collect();
        Ok(Self { object, segments })
    }

    /// The file's own account of itself.
    pub(crate) fn object(&self) -> &object::File<'data> {
        &self.object
    }

    /// The build id, from the note segments or sections.
    pub(crate) fn build_id(&self) -> Option<BuildId> {
        BuildId::new(self.object.build_id().ok().flatten()?)
    }

    /// The address that the file's tables give to the byte at `offset`, if it is loaded at all.
    ///
    /// Whole pages are mapped, so bytes just before and after a segment appear in memory too;
    /// they are accepted when no segment holds the offset properly.
    pub(crate) fn address_of(&self, offset: FileOffset) -> Option<ElfAddress> {
        let within = |segment: &&Segment, slack: u64| {
            let start = segment.offset & !(slack.max(1) - 1);
            let end = segment.offset.saturating_add(segment.size);
            let end = end.checked_next_multiple_of(slack.max(1)).unwrap_or(end);
            (start..end).contains(&offset.0)
        };
        let find = |slack, executable: bool| {
            self.segments
                .iter()
                .filter(|segment| segment.executable || !executable)
                .find(|segment| within(segment, slack))
        };
        let segment = find(1, true)
            .or_else(|| find(1, false))
            .or_else(|| find(PAGE, true))?;
        let distance = offset.0.wrapping_sub(segment.offset);
        Some(ElfAddress(segment.address.wrapping_add(distance)))
    }

    /// Whether the program headers contain file offsets of code: those of a debug file may not.
    pub(crate) fn knows_where_code_was(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.executable && segment.size > 0)
    }

    /// Whether there is DWARF in this file.
    pub(crate) fn has_dwarf(&self) -> bool {
        self.object
            .section_by_name(".debug_info")
            .is_some_and(|section| {
                section.size() > 0
                    && section
                        .compressed_file_range()
                        .is_ok_and(|range| range.uncompressed_size > 0)
            })
    }

    /// Whether there is a full symbol table, not only the dynamic linker's.
    pub(crate) fn has_symbol_table(&self) -> bool {
        self.object.symbol_table().is_some()
    }

    /// A section's contents, decompressed. A missing or damaged section is empty.
    pub(crate) fn section(&self, name: &str) -> Cow<'data, [u8]> {
        self.try_section(name).unwrap_or_default()
    }

    fn try_section(&self, name: &str) -> Option<Cow<'data, [u8]>> {
        let compressed = self.object.section_by_name(name)?.compressed_data().ok()?;
        let plausible = (compressed.data.len() as u64).saturating_mul(MAX_RATIO);
        if compressed.uncompressed_size > plausible.min(MAX_SECTION) {
            return None;
        }
        compressed.decompress().ok()
    }
}
