//! What a caller may choose.

use std::path::PathBuf;
use std::time::Duration;

use prof_model::{Module, Pid};

/// How to turn addresses into names.
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// Whether to read inlined frames and lines from DWARF. Without, only symbol tables are read.
    pub inlines: bool,
    /// How names are written.
    pub demangle: Demangle,
    /// Where separate debug files are: directories laid out as `/usr/lib/debug` is.
    pub debug_dirs: Vec<PathBuf>,
    /// The kernel's symbol table, `/proc/kallsyms` or a copy of it.
    pub kallsyms: PathBuf,
    /// Where programs leave their JIT maps (`perf-PID.map`), `/tmp` unless a test says otherwise.
    pub jit_map_dir: PathBuf,
    /// Whether and how to ask debuginfod servers for debug info that is not on this machine.
    pub debuginfod: Option<Debuginfod>,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self {
            inlines: true,
            demangle: Demangle::Full,
            debug_dirs: vec!["/usr/lib/debug".into()],
            kallsyms: "/proc/kallsyms".into(),
            jit_map_dir: "/tmp".into(),
            debuginfod: None,
        }
    }
}

/// How names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Demangle {
    /// As the linker sees them.
    None,
    /// Demangled and made readable, with all template and generic arguments.
    #[default]
    Full,
}

/// How to reach debuginfod servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debuginfod {
    /// Base URLs, asked in order (`DEBUGINFOD_URLS`).
    pub urls: Vec<String>,
    /// The cache that all debuginfod clients share.
    pub cache: PathBuf,
    /// Give up on a download that makes no progress for so long (`DEBUGINFOD_TIMEOUT`).
    pub timeout: Duration,
}

/// Further places where a module's file may be, and what is known of its process.
///
/// The caller knows which processes live and in which mount namespace; this crate does not.
pub trait Places: Send + Sync {
    /// Paths to try, in order, before the module's own path: `/proc/PID/root/...` or
    /// `/proc/PID/map_files/...` of a process that has it mapped. The build id is checked in any
    /// case.
    fn candidates(&self, module: &Module) -> Vec<PathBuf>;

    /// The user that a process belongs to, if it is known better than from `/proc` (where it is
    /// gone once the process is).
    fn owner(&self, _pid: Pid) -> Option<u32> {
        None
    }

    /// The jitdump files (`jit-PID.dump`) that a process wrote. A recording knows them: a run-time
    /// compiler maps a page of the file as executable, only so that profilers see its path.
    fn jitdumps(&self, _pid: Pid) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Nothing is known beyond the recorded paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOtherPlaces;

impl Places for NoOtherPlaces {
    fn candidates(&self, _module: &Module) -> Vec<PathBuf> {
        Vec::new()
    }
}
