//! The running kernel's machine code, from `/proc/kcore`: as it runs, with all that was patched.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// An ELF file of all memory that the kernel has mapped; far larger than any disk, and only for
/// root (CAP_SYS_RAWIO).
pub(super) struct KernelMemory {
    file: File,
    segments: Vec<ProgramHeader64<Endianness>>,
}

impl KernelMemory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        /// The headers of some hundred segments.
        const HEADERS: usize = 64 << 10;
        let file = File::open(path)?;
        let mut start = vec![0; HEADERS];
        let size = file.read_at(&mut start, 0)?;
        start.truncate(size);
        let segments = segments(&start).map_err(io::Error::other)?;
        Ok(Self { file, segments })
    }

    /// As many of `size` bytes from this address on as are in one piece of memory.
    pub(super) fn read(&self, address: u64, size: u64) -> io::Result<Vec<u8>> {
        let endian = Endianness::default();
        let find = |segment: &&ProgramHeader64<Endianness>| {
            let inside = address.checked_sub(segment.p_vaddr(endian));
            inside.is_some_and(|inside| inside < segment.p_filesz(endian))
        };
        let Some(segment) = self.segments.iter().find(find) else {
            return Err(io::Error::other("the address is in no segment"));
        };
        let inside = address - segment.p_vaddr(endian);
        let size = size.min(segment.p_filesz(endian) - inside);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let offset = segment.p_offset(endian).saturating_add(inside);
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

fn segments(start: &[u8]) -> object::Result<Vec<ProgramHeader64<Endianness>>> {
    let header = FileHeader64::<Endianness>::parse(start)?;
    let endian = header.endian()?;
    let all = header.program_headers(endian, start)?.iter();
    Ok(all
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .copied()
        .collect())
}

#[cfg(test)]
mod tests {
    use prof_model::FileOffset;

    use crate::code::{Code, CodeError};
    use crate::options::{RecordedKernel, SymbolOptions};
    use crate::symbolizer::Symbolizer;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    /// A file like `/proc/kcore` with one segment of this code.
    fn kcore(code: &[u8]) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        // A core file for x86-64; one program header of 56 bytes behind this header of 64.
        file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
        let entry_and_tables: Vec<u8> = words(&[0, 64, 0]);
        file.extend(entry_and_tables);
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        let size = code.len() as u64;
        let segment: Vec<u8> = words(&[120, TEXT, 0, size, size, 1]);
        file.extend(segment);
        file.extend(code);
        file
    }

    fn code(recorded_text: u64, addresses: &[u64]) -> Result<Vec<Code>, CodeError> {
        let directory = tempfile::tempdir().unwrap();
        let [kallsyms, kcore_path] = ["kallsyms", "kcore"].map(|name| directory.path().join(name));
        let names = format!(
            "{TEXT:x} T _text\n{:x} T next\n{:x} T far\n",
            TEXT + 4,
            TEXT + 6
        );
        std::fs::write(&kallsyms, names).unwrap();
        std::fs::write(&kcore_path, kcore(&[0x90, 0x90, 0x90, 0xc3, 0x31, 0xc0])).unwrap();
        let symbolizer = Symbolizer::new(SymbolOptions {
            kallsyms,
            kcore: kcore_path,
            kernel_notes: directory.path().join("none"),
            recorded_kernel: RecordedKernel {
                build_id: None,
                text: Some(recorded_text),
            },
            ..SymbolOptions::default()
        });
        symbolizer.kernel_code(addresses)
    }

    #[test]
    fn functions_are_read_where_the_kernel_lies_now() {
        // In the boot that was recorded, it lay 0x1000 lower.
        let recorded = TEXT - 0x1000;
        let found = code(recorded, &[recorded + 3, recorded + 5, recorded + 4]).unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|code| {
                (
                    code.offset,
                    code.address.0,
                    code.bytes.as_slice(),
                    code.left_out,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (FileOffset(recorded), TEXT, &[0x90, 0x90, 0x90, 0xc3][..], 0),
                (FileOffset(recorded + 4), TEXT + 4, &[0x31, 0xc0], 0),
            ]
        );
    }

    #[test]
    fn missing_code_is_reported() {
        assert_eq!(code(TEXT, &[TEXT + 7]), Err(CodeError::NoBytes));
        assert_eq!(code(TEXT, &[16]), Err(CodeError::NoSymbol));
    }
}
