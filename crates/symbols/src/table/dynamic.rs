//! Functions of files without section headers: those that the dynamic linker knows.
//!
//! ```text
//!   program headers ─▶ PT_DYNAMIC ─▶ DT_SYMTAB, DT_STRTAB    symbols and their names
//!                                    DT_GNU_HASH or DT_HASH  how many there are
//! ```

use object::elf;
use object::read::StringTable;
use object::read::elf::{Dyn, ElfFile, FileHeader, GnuHashTable, HashTable, ProgramHeader, Sym};

use crate::image::Image;
use crate::table::is_name;
use crate::table::symbol::Symbol;

/// The functions of a file that has no sections; none if it has some.
pub(crate) fn functions<'data>(image: &Image<'data>) -> Vec<Symbol<'data>> {
    let found = match image.object() {
        object::File::Elf64(file) => of_file(file),
        object::File::Elf32(file) => of_file(file),
        _ => None,
    };
    found.unwrap_or_default()
}

fn of_file<'data, Elf: FileHeader>(file: &ElfFile<'data, Elf>) -> Option<Vec<Symbol<'data>>> {
    if !file.elf_section_table().is_empty() {
        return None;
    }
    let (endian, data) = (file.endian(), file.data());
    let segments = file.elf_program_headers();
    let mut dynamics = segments
        .iter()
        .filter_map(|it| it.dynamic(endian, data).ok()?);
    let entries = dynamics.next()?;
    let value = |tag: elf::DynamicTag| {
        let entry = entries.iter().find(|entry| entry.tag(endian) == tag)?;
        Some(entry.val(endian))
    };
    // From an address to the end of its segment.
    let from = |address: u64| {
        segments.iter().find_map(|segment| {
            let start: u64 = segment.p_vaddr(endian).into();
            let bytes = segment.data(endian, data).ok()?;
            let is_loaded = segment.p_type(endian) == elf::PT_LOAD;
            let at = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(at..).filter(|_| is_loaded)
        })
    };
    let count = count::<Elf>(
        endian,
        value(elf::DT_GNU_HASH).and_then(from),
        value(elf::DT_HASH).and_then(from),
    )?;
    let symbols = from(value(elf::DT_SYMTAB)?)?;
    let (symbols, _) = object::pod::slice_from_bytes::<Elf::Sym>(symbols, count).ok()?;
    let names = from(value(elf::DT_STRTAB)?)?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let limit = |address: u64| Some(address.saturating_add(from(address)?.len() as u64));
    let function = |symbol: &Elf::Sym| {
        let start: u64 = symbol.st_value(endian).into();
        let size: u64 = symbol.st_size(endian).into();
        let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
        let is_defined = symbol.st_shndx(endian) != elf::SHN_UNDEF;
        let name = symbol
            .name(endian, names)
            .ok()
            .filter(|name| is_name(name))?;
        (is_function && is_defined).then_some(())?;
        Some(Symbol {
            start,
            end: start.saturating_add(size),
            limit: limit(start)?,
            rank: if symbol.st_bind() == elf::STB_WEAK {
                2
            } else {
                0
            },
            name: name.into(),
        })
    };
    Some(symbols.iter().filter_map(function).collect())
}

/// How many symbols the dynamic linker knows.
fn count<Elf: FileHeader>(
    endian: Elf::Endian,
    gnu_hash: Option<&[u8]>,
    hash: Option<&[u8]>,
) -> Option<usize> {
    let gnu = gnu_hash.and_then(|bytes| GnuHashTable::<Elf>::parse(endian, bytes).ok());
    let length = gnu
        .and_then(|table| table.symbol_table_length(endian))
        .or_else(|| {
            let table = HashTable::<Elf>::parse(endian, hash?).ok()?;
            Some(table.symbol_table_length())
        });
    usize::try_from(length?).ok()
}
