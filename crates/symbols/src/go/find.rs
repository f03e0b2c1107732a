//! Where a file has Go's tables.

use object::{Object, ObjectSection, ObjectSegment};

use super::Bytes;
use super::header::Header;
use crate::image::Image;

/// The names of their section; that of position-independent programs is the second.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Other sections of Go programs. Linkers of C put the tables among other read-only data.
const SIGNS: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// Addresses and bytes that may be Go's tables: those of their section, or, in a file without
/// section headers and in programs that have other sections of Go, all that begin as they do.
pub(super) fn tables<'a, 'data>(
    image: &'a Image<'data>,
) -> impl Iterator<Item = (u64, Bytes<'data>)> + 'a {
    let object = image.object();
    let by_name = SECTIONS
        .iter()
        .find_map(|name| object.section_by_name(name));
    let section =
        by_name.and_then(|section| Some((section.address(), Bytes(section.data().ok()?))));
    let has_sign = || {
        SIGNS
            .iter()
            .any(|name| object.section_by_name(name).is_some())
    };
    let is_searched = section.is_none() && (object.sections().next().is_none() || has_sign());
    let segments = object.segments().filter(move |_| is_searched);
    let data = segments.filter_map(|segment| Some((segment.address(), segment.data().ok()?)));
    section
        .into_iter()
        .chain(data.flat_map(|(address, bytes)| search(address, bytes)))
}

/// The places in these bytes that may be Go's tables.
fn search(address: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, Bytes<'_>)> {
    /// The linker aligns them to more.
    const ALIGNMENT: usize = 16;
    /// A damaged file may be full of such places.
    const MOST: usize = 1000;
    let first = (address.wrapping_neg() % ALIGNMENT as u64) as usize;
    let places = (first..bytes.len()).step_by(ALIGNMENT);
    let found = places.filter_map(move |at| {
        let rest = bytes.get(at..)?;
        matches!(rest, [0xf0 | 0xf1, 0xff, 0xff, 0xff, 0, 0, 1 | 4, 8, ..]).then_some(())?;
        Some((address.checked_add(at as u64)?, Bytes(rest)))
    });
    found.take(MOST)
}

/// Where the code begins, if nothing but the header and the sections says it.
pub(super) fn start_of_text(image: &Image<'_>, header: &Header<'_>) -> Option<u64> {
    let section = || {
        image
            .object()
            .section_by_name(".text")
            .map(|text| text.address())
    };
    match header.text {
        0 => section(),
        text => Some(text),
    }
}
