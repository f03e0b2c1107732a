//! Where the bytes of modules come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use prof_model::{Mapping, Module, Pid};

/// How to open the files that code was mapped from.
///
/// Called when the first sample meets a module, while the process may still live.
pub trait ModuleFiles {
    /// Opens the file of `module`, which process `pid` has mapped as `mapping` says.
    fn open(&mut self, pid: Pid, module: &Module, mapping: &Mapping) -> io::Result<File>;

    /// The bytes of the `[vdso]` of process `pid`, an ELF image. By default those of our own
    /// process: a kernel has one image for all its 64-bit processes.
    fn vdso(&mut self, pid: Pid, mapping: &Mapping) -> io::Result<Vec<u8>> {
        let _ = (pid, mapping);
        own_vdso()
    }
}

/// Opens a module by its path: as the process sees it if it still lives (`/proc/PID/root`), or
/// else as we do.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFiles;

impl ModuleFiles for LocalFiles {
    fn open(&mut self, pid: Pid, module: &Module, _: &Mapping) -> io::Result<File> {
        let relative = module.path.strip_prefix("/").unwrap_or(&module.path);
        let seen = Path::new("/proc")
            .join(pid.to_string())
            .join("root")
            .join(relative);
        File::open(seen).or_else(|_| File::open(&module.path))
    }
}

/// Our own process's vdso, read through /proc.
fn own_vdso() -> io::Result<Vec<u8>> {
    const LIMIT: u64 = 1 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "this process has no [vdso]");
    let line = maps
        .lines()
        .find(|line| line.ends_with("[vdso]"))
        .ok_or_else(missing)?;
    let parse = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = line
        .split_whitespace()
        .next()
        .and_then(|range| range.split_once('-'))
        .and_then(|(start, end)| Some((parse(start)?, parse(end)?)))
        .ok_or_else(missing)?;
    let mut image = vec![0; end.saturating_sub(start).min(LIMIT) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, start)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_vdso_is_an_elf_image() {
        let image = own_vdso().unwrap();
        assert_eq!(image.get(..4), Some(&b"\x7fELF"[..]));
    }
}
