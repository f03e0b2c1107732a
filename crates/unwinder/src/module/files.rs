//! Sources of the bytes of modules.

use std::fs::File;
use std::io;
use std::time::Duration;

use prof_model::{Mapping, Module, Pid};
use prof_procfs::{Task, own_vdso};

/// `.eh_frame` of the largest browsers takes 60 MB.
pub(super) const TABLE_LIMIT: u64 = 256 << 20;

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

    /// The most bytes of tables that may be read now of a module of process `pid`.
    fn most_bytes(&mut self, pid: Pid) -> u64 {
        let _ = pid;
        TABLE_LIMIT
    }

    /// Tables of `module` were read for process `pid`, or not, which took this time.
    fn has_read(&mut self, pid: Pid, module: &Module, read: TablesRead, time: Duration) {
        let _ = (pid, module, read, time);
    }
}

/// How much of the tables of a module was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesRead {
    /// So many bytes.
    Bytes(u64),
    /// Nothing: it would be more than may be read.
    TooLarge,
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
