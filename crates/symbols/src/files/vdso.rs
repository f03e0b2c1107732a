//! The vdso: a small ELF file that the kernel maps into every process, this one too.

use std::io;

use prof_filemap::MappedFile;

/// This process's vdso.
pub(crate) fn read() -> io::Result<MappedFile> {
    Ok(MappedFile::from(prof_procfs::own_vdso()?))
}
