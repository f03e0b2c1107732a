//! Where greenlets of Python start: stacks of their own, which begin in the middle of a function of
//! the module `greenlet`.
//!
//! That function (`g_initialstub`) has moved to the new stack before it calls `inner_bootstrap`,
//! which never returns. Its CFI does not say so: it leads to what happens to be above, such as the
//! stack of another greenlet.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::LittleEndian as LE;
use object::elf::Sym64;
use object::pod;

use super::elf::{Headers, SectionName};
use super::source::Source;

/// In its mangled name, whatever its parameters are.
const STARTS: &[u8] = b"UserGreenlet15inner_bootstrap";
const MODULE: &[u8] = b"_greenlet.";
const TABLE_LIMIT: u64 = 16 << 20;

/// Whether the file may be the module.
pub(super) fn may_be(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes);
    name.is_some_and(|name| name.starts_with(MODULE))
}

/// The addresses of the function that greenlets start with.
pub(super) fn starts(source: &Source, headers: &Headers) -> Vec<Range<u64>> {
    let tables = [
        (SectionName::Dynsym, SectionName::Dynstr),
        (SectionName::Symtab, SectionName::Strtab),
    ];
    let found = tables.map(|(symbols, names)| starts_in(source, headers, symbols, names));
    found.into_iter().flatten().flatten().collect()
}

fn starts_in(
    source: &Source,
    headers: &Headers,
    symbols: SectionName,
    names: SectionName,
) -> Option<Vec<Range<u64>>> {
    let read = |name| {
        let section = headers.section(name)?;
        let bytes = source.read_range(section.file_offset, section.size, TABLE_LIMIT);
        bytes.ok()
    };
    let (symbols, names) = (read(symbols)?, read(names)?);
    let count = symbols.len() / size_of::<Sym64<LE>>();
    let (symbols, _) = pod::slice_from_bytes::<Sym64<LE>>(&symbols, count).ok()?;
    let ranges = symbols.iter().filter_map(|symbol| {
        let name = names.get(symbol.st_name.get(LE) as usize..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        let is_it = name.windows(STARTS.len()).any(|part| part == STARTS);
        let (start, size) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
        (is_it && start > 0).then(|| start..start.saturating_add(size))
    });
    Some(ranges.collect())
}
