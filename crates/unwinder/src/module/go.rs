//! Whether a module is a Go program: whether it has the tables of Go's own runtime.

use super::elf::{Headers, SectionName, Segment};
use super::source::Source;

/// Sections of Go programs, stripped or not. Linkers of C may keep only the last ones.
const SECTIONS: [SectionName; 3] = [
    SectionName::GoTables,
    SectionName::GoBuildInfo,
    SectionName::GoBuildId,
];

/// Whether it is: by its sections, or, in a file without section headers, by how the tables begin.
pub(super) fn is_program(source: &Source, headers: &Headers) -> bool {
    let mut sections = SECTIONS.into_iter();
    sections.any(|name| headers.section(name).is_some())
        || !headers.has_sections && has_tables(source, &headers.segments)
}

/// Whether data begins somewhere as Go's tables do (`runtime.pcHeader`).
fn has_tables(source: &Source, segments: &[Segment]) -> bool {
    /// The linker aligns them to more.
    const ALIGNMENT: u64 = 16;
    const PIECE: usize = 1 << 20;
    /// Of any one file.
    const MOST: u64 = 64 << 20;
    let mut left = MOST;
    let mut piece = vec![0; PIECE];
    for segment in segments.iter().filter(|segment| !segment.executable) {
        let start = segment.file_offset.next_multiple_of(ALIGNMENT);
        let end = segment.file_offset.saturating_add(segment.file_size);
        let mut at = start;
        while at < end && left > 0 {
            let Ok(count @ 1..) = source.read(at, &mut piece) else {
                break;
            };
            if piece[..count].chunks(ALIGNMENT as usize).any(begins_tables) {
                return true;
            }
            at = at.saturating_add(count as u64);
            left = left.saturating_sub(count as u64);
        }
    }
    false
}

/// From Go 1.18 on, on a machine of 64 bits, with instructions of a multiple of 1 or 4 bytes.
fn begins_tables(bytes: &[u8]) -> bool {
    matches!(bytes, [0xf0 | 0xf1, 0xff, 0xff, 0xff, 0, 0, 1 | 4, 8, ..])
}
