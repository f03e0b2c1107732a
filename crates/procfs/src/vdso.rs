//! The vdso: a small ELF file that the kernel maps into every process.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::task::Task;

/// The bytes of our own `[vdso]`, an ELF image: the kernel maps the same one into all its 64-bit
/// processes.
///
/// # Errors
/// There is none, or /proc is not readable.
pub fn own_vdso() -> io::Result<Vec<u8>> {
    /// Real ones have two pages.
    const LONGEST: u64 = 1 << 20;
    let task = Task::this_process();
    let maps = task.maps()?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "this process has no [vdso]");
    let Range { start, end } = maps.named("[vdso]").ok_or_else(missing)?.addresses;
    let length = end.saturating_sub(start).min(LONGEST);
    let mut image = vec![0; length as usize];
    task.open("mem")?.read_exact_at(&mut image, start)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_vdso_is_an_elf_image() {
        assert_eq!(own_vdso().unwrap().get(..4), Some(&b"\x7fELF"[..]));
    }
}
