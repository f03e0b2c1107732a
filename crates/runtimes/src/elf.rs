//! The file of an interpreter. Only the needed parts are read: the program runs meanwhile.

use std::ffi::CStr;
use std::fs;
use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym, SymbolTable};
use object::{
    Architecture, Endianness, File, FileKind, Object, ObjectSection, ObjectSegment, ReadCache,
    ReadRef, elf,
};

type Bytes<'d> = &'d ReadCache<fs::File>;

/// Why a file is no runtime that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It contains none.
    None,
    /// Its tables are larger than may be read.
    TooLarge,
}

/// An ELF file.
pub(crate) struct Elf<'d> {
    file: File<'d, Bytes<'d>>,
    bytes: Bytes<'d>,
}

impl<'d> Elf<'d> {
    /// The most bytes of an interpreter's file. Node has 150 MB.
    const SIZE: u64 = 1 << 29;
    /// Bytes of a symbol's name; the rest is cut.
    const NAME: usize = 64;

    /// Bytes at an address that are read, at most.
    const BYTES: u64 = 1 << 20;

    /// Parses the headers, of a file whose tables take no more than `most` bytes; also returns how
    /// many they take.
    pub(crate) fn parse_within(bytes: Bytes<'d>, most: u64) -> Result<(Self, u64), ReadError> {
        let size = match FileKind::parse(bytes) {
            Ok(FileKind::Elf64) => size_of_tables::<elf::FileHeader64<Endianness>>(bytes),
            Ok(FileKind::Elf32) => size_of_tables::<elf::FileHeader32<Endianness>>(bytes),
            _ => None,
        };
        let size = size.ok_or(ReadError::None)?;
        if size > most {
            return Err(ReadError::TooLarge);
        }
        let elf = Self::parse(bytes).ok_or(ReadError::None)?;
        Ok((elf, size))
    }

    /// Parses the headers, of a file that is not too large.
    pub(crate) fn parse(bytes: Bytes<'d>) -> Option<Self> {
        (bytes.len().ok()? <= Self::SIZE).then_some(())?;
        let file = File::parse(bytes).ok()?;
        Some(Self { file, bytes })
    }

    pub(crate) fn is_x86_64(&self) -> bool {
        self.file.architecture() == Architecture::X86_64
    }

    /// Whether the frames of run-time compilers are known for its processor.
    pub(crate) fn has_known_frames(&self) -> bool {
        matches!(
            self.file.architecture(),
            Architecture::X86_64 | Architecture::Aarch64
        )
    }

    /// The size of glibc's `pthread_mutex_t` on its processor.
    pub(crate) fn mutex_size(&self) -> u64 {
        match self.file.architecture() {
            Architecture::Aarch64 => 48,
            _ => 40,
        }
    }

    /// Calls `each` with the name and the address range of every symbol.
    pub(crate) fn symbols(&self, each: impl FnMut(&'d [u8], Range<u64>)) {
        match &self.file {
            File::Elf64(elf) => symbols_of(elf, each),
            File::Elf32(elf) => symbols_of(elf, each),
            _ => {}
        }
    }

    /// What is mapped of the file.
    pub(crate) fn mapped(&self) -> Segments {
        Segments::of(&self.file)
    }

    /// The bytes at an address range, up to the end of their segment.
    pub(crate) fn at(&self, range: Range<u64>) -> Option<&'d [u8]> {
        let (offset, length) = segments_of(&self.file).find_map(|(start, length, address)| {
            let at = range.start.checked_sub(address).filter(|&at| at < length)?;
            let wanted = range.end.saturating_sub(range.start);
            let length = wanted.min(length - at).min(Self::BYTES);
            Some((start.checked_add(at)?, length))
        })?;
        self.bytes.read_bytes_at(offset, length).ok()
    }

    /// The address and the bytes of a section.
    pub(crate) fn section(&self, name: &str) -> Option<(u64, &'d [u8])> {
        let section = self.file.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    }
}

/// The bytes of the tables of a file that may be read.
fn size_of_tables<E: FileHeader<Endian = Endianness>>(bytes: Bytes<'_>) -> Option<u64> {
    /// Programs have some dozens; with more, even the headers are large.
    const HEADERS: u32 = 1 << 12;
    /// The sections besides tables of symbols.
    const READ: [&[u8]; 4] = [b".eh_frame", b".eh_frame_hdr", b".rodata", b".text"];
    let header = E::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let counts = [header.shnum(endian, bytes), header.phnum(endian, bytes)];
    if counts
        .iter()
        .any(|count| count.is_ok_and(|count| count > HEADERS))
    {
        return Some(u64::MAX);
    }
    let sections = header.sections(endian, bytes).ok()?;
    let sizes = sections.iter().filter_map(|section| {
        let is_read = match section.sh_type(endian) {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM | elf::SHT_STRTAB => true,
            elf::SHT_NOBITS => false,
            _ => (sections.section_name(endian, section)).is_ok_and(|it| READ.contains(&it)),
        };
        is_read.then(|| section.sh_size(endian).into())
    });
    Some(sizes.fold(0, u64::saturating_add))
}

/// File offset, length and address of the segments of a file.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Vec<(u64, u64, u64)>);

impl Segments {
    pub(crate) fn of<'d>(file: &File<'d, Bytes<'d>>) -> Self {
        Self(segments_of(file).collect())
    }

    /// Where these addresses of the file are in it.
    pub(crate) fn file_range(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let contains = |&&(_, length, address): &&(u64, u64, u64)| {
            (address..address.saturating_add(length)).contains(&range.start)
        };
        let &(offset, _, address) = self.0.iter().find(contains)?;
        let start = offset.checked_add(range.start - address)?;
        Some(start..start.saturating_add(range.end.saturating_sub(range.start)))
    }

    /// What is to be added to the file's own addresses where its bytes from `file_offset` on are
    /// mapped at `start`; `None` if that is no part of it.
    pub(crate) fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let &(offset, _, address) = self.0.iter().find(|&&(offset, length, _)| {
            (offset & !(PAGE - 1)..offset.saturating_add(length)).contains(&file_offset)
        })?;
        let mapped = address.wrapping_add(file_offset.wrapping_sub(offset));
        Some(start.wrapping_sub(mapped))
    }
}

/// File offset, length and address of each segment.
fn segments_of<'d>(file: &File<'d, Bytes<'d>>) -> impl Iterator<Item = (u64, u64, u64)> {
    file.segments().map(|segment| {
        let (start, length) = segment.file_range();
        (start, length, segment.address())
    })
}

/// `ranges`, with `bias` added.
pub(crate) fn moved(ranges: &[Range<u64>], bias: u64) -> Vec<Range<u64>> {
    let moved = |range: &Range<u64>| bias.wrapping_add(range.start)..bias.wrapping_add(range.end);
    ranges.iter().map(moved).collect()
}

/// Reads the table of names at once: reading each name takes two system calls.
fn symbols_of<'d, E: FileHeader>(
    elf: &ElfFile<'d, E, Bytes<'d>>,
    mut each: impl FnMut(&'d [u8], Range<u64>),
) {
    let endian = elf.endian();
    let names = |table: &SymbolTable<'d, E, Bytes<'d>>| {
        let section = elf.elf_section_table().section(table.string_section());
        section.ok()?.data(endian, elf.data()).ok()
    };
    for table in [elf.elf_dynamic_symbol_table(), elf.elf_symbol_table()] {
        let names = names(table).unwrap_or_default();
        for symbol in table.iter() {
            let name = names.get(symbol.st_name(endian) as usize..);
            let name = name.unwrap_or_default();
            let name = name.get(..Elf::NAME).unwrap_or(name);
            let name = CStr::from_bytes_until_nul(name).map_or(name, CStr::to_bytes);
            let start: u64 = symbol.st_value(endian).into();
            let size: u64 = symbol.st_size(endian).into();
            each(name, start..start.saturating_add(size));
        }
    }
}
