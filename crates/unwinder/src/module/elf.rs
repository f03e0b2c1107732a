//! The parts of an ELF file that unwinding needs: segments, sections by name, entry point.
//!
//! Only 64-bit little-endian files, which all supported architectures have. Sizes and offsets are
//! claims of the file; nothing is allocated before they were checked against its size.

use object::LittleEndian as LE;
use object::elf::{
    FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader64, SHF_COMPRESSED,
    SHT_NOBITS, SectionHeader64,
};
use object::pod;

use super::ModuleError;
use super::source::Source;

/// The headers of an ELF file.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// `e_machine`.
    pub(crate) machine: u16,
    /// `e_entry`: 0 where there is none.
    pub(crate) entry: u64,
    /// The loadable segments.
    pub(crate) segments: Vec<Segment>,
    /// PT_GNU_EH_FRAME.
    pub(crate) eh_frame_hdr: Option<Segment>,
    /// PT_NOTE segments.
    pub(crate) notes: Vec<Segment>,
    pub(crate) sections: Vec<Section>,
    /// Whether there are any section headers, also of other sections.
    pub(crate) has_sections: bool,
}

/// A program header: which bytes of the file are mapped where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) file_offset: u64,
    pub(crate) file_size: u64,
    pub(crate) address: u64,
    pub(crate) executable: bool,
}

impl Segment {
    pub(crate) fn holds_address(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.file_size
    }
}

/// A section with bytes in the file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: SectionName,
    pub(crate) file_offset: u64,
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) compressed: bool,
}

/// The sections that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionName {
    EhFrame,
    EhFrameHdr,
    DebugFrame,
    /// `.zdebug_frame`: compressed the old way, marked by its name.
    ZdebugFrame,
    Text,
    Got,
    Dynsym,
    Dynstr,
    Symtab,
    Strtab,
    /// The tables of Go's runtime.
    GoTables,
    /// Facts about how a Go program was built.
    GoBuildInfo,
    /// The note with Go's own build id.
    GoBuildId,
}

impl SectionName {
    fn of(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            b".eh_frame" => Self::EhFrame,
            b".eh_frame_hdr" => Self::EhFrameHdr,
            b".debug_frame" => Self::DebugFrame,
            b".zdebug_frame" => Self::ZdebugFrame,
            b".text" => Self::Text,
            b".got" => Self::Got,
            b".dynsym" => Self::Dynsym,
            b".dynstr" => Self::Dynstr,
            b".symtab" => Self::Symtab,
            b".strtab" => Self::Strtab,
            b".gopclntab" | b".data.rel.ro.gopclntab" => Self::GoTables,
            b".go.buildinfo" => Self::GoBuildInfo,
            b".note.go.buildid" => Self::GoBuildId,
            _ => return None,
        })
    }
}

/// Program headers and section headers of real files take some KiB.
const HEADERS_LIMIT: u64 = 16 << 20;

impl Headers {
    /// Reads the headers. A missing or broken section table is no error: segments suffice.
    pub(crate) fn read(source: &Source) -> Result<Self, ModuleError> {
        let mut bytes = [0; size_of::<FileHeader64<LE>>()];
        let count = source.read(0, &mut bytes)?;
        if count < bytes.len() || !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Err(ModuleError::NotElf);
        }
        let (header, _) =
            pod::from_bytes::<FileHeader64<LE>>(&bytes).map_err(|()| ModuleError::NotElf)?;
        let mut headers = Self {
            machine: header.e_machine.get(LE).0,
            entry: header.e_entry.get(LE),
            ..Self::default()
        };
        headers.read_segments(source, header)?;
        headers.sections = read_sections(source, header).unwrap_or_default();
        headers.has_sections = header.e_shnum.get(LE) > 0;
        Ok(headers)
    }

    pub(crate) fn section(&self, name: SectionName) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn read_segments(
        &mut self,
        source: &Source,
        header: &FileHeader64<LE>,
    ) -> Result<(), ModuleError> {
        let count = usize::from(header.e_phnum.get(LE));
        let size = (count * size_of::<ProgramHeader64<LE>>()) as u64;
        let bytes = source.read_range(header.e_phoff.get(LE), size, HEADERS_LIMIT)?;
        let (table, _) = pod::slice_from_bytes::<ProgramHeader64<LE>>(&bytes, count)
            .map_err(|()| ModuleError::Malformed)?;
        for program in table {
            let segment = Segment {
                file_offset: program.p_offset.get(LE),
                file_size: program.p_filesz.get(LE),
                address: program.p_vaddr.get(LE),
                executable: program.p_flags.get(LE).contains(PF_X),
            };
            match program.p_type.get(LE) {
                PT_LOAD => self.segments.push(segment),
                PT_NOTE => self.notes.push(segment),
                PT_GNU_EH_FRAME => self.eh_frame_hdr = Some(segment),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_sections(source: &Source, header: &FileHeader64<LE>) -> Result<Vec<Section>, ModuleError> {
    let offset = header.e_shoff.get(LE);
    let count = u64::from(header.e_shnum.get(LE));
    let size = count * size_of::<SectionHeader64<LE>>() as u64;
    let bytes = source.read_range(offset, size, HEADERS_LIMIT)?;
    let (table, _) = pod::slice_from_bytes::<SectionHeader64<LE>>(&bytes, count as usize)
        .map_err(|()| ModuleError::Malformed)?;
    let names = table
        .get(usize::from(header.e_shstrndx.get(LE).0))
        .ok_or(ModuleError::Malformed)?;
    let names = source.read_range(
        names.sh_offset.get(LE),
        names.sh_size.get(LE),
        HEADERS_LIMIT,
    )?;
    let sections = table.iter().filter_map(|section| {
        let name = names.get(section.sh_name.get(LE) as usize..)?;
        let name = SectionName::of(name.split(|&byte| byte == 0).next()?)?;
        let in_file = section.sh_type.get(LE) != SHT_NOBITS;
        in_file.then(|| Section {
            name,
            file_offset: section.sh_offset.get(LE),
            size: section.sh_size.get(LE),
            address: section.sh_addr.get(LE),
            compressed: section.sh_flags.get(LE).contains(SHF_COMPRESSED),
        })
    });
    Ok(sections.collect())
}
