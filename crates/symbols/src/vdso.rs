//! The vdso: a small ELF file that the kernel maps into every process, this one too.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use prof_filemap::MappedFile;

/// Longer ones are not believed, in bytes; real ones have two pages.
const LONGEST: u64 = 1 << 20;

/// This process's vdso.
pub(crate) fn read() -> io::Result<MappedFile> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let (start, end) = find(&maps).ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(MappedFile::from(bytes))
}

fn find(maps: &str) -> Option<(u64, u64)> {
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    (start < end && end - start <= LONGEST).then_some((start, end))
}
