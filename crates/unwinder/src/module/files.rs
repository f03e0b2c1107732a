//! Sources of the bytes of modules.

use std::fs::File;
use std::io;

use prof_model::{Mapping, Module, Pid};
use prof_procfs::{Task, own_vdso};

/// Opens the files that code is mapped from.
///
/// Called at the first sample in a module, while the process may still live.
pub trait ModuleFiles {
    /// Opens the file of `module`, which process `pid` has mapped as `mapping`.
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
        let seen = Task::of(pid).below_root(&module.path);
        File::open(seen).or_else(|_| File::open(&module.path))
    }
}
