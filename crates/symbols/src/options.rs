//! What a caller may choose.

use std::borrow::Cow;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prof_filemap::Rights;
use prof_model::{BuildId, Module, Pid};

use crate::ambiguous_paths::AmbiguousPaths;
use crate::host::Host;
use crate::status::ModuleStatus;

/// How to turn addresses into names.
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// Whether to read inlined frames and lines from DWARF. Without, only symbol tables are read.
    pub inlines: bool,
    /// How names are written.
    pub demangle: Demangle,
    /// Where the recorded machine's files are, if not below `/`.
    pub symfs: Option<PathBuf>,
    /// Directories with separate debug files, laid out as `/usr/lib/debug` is; and perf's cache of
    /// programs.
    pub debug_dirs: Vec<PathBuf>,
    /// The kernel's symbol table, `/proc/kallsyms` or a copy of it.
    pub kallsyms: PathBuf,
    /// The running kernel's ELF notes, `/sys/kernel/notes`: its build id is there.
    pub kernel_notes: PathBuf,
    /// The kernel's memory as an ELF file, `/proc/kcore`: its machine code is there.
    pub kcore: PathBuf,
    /// Where the kernel's own debug info may be. The build id decides; where none fits, there are
    /// names from `kallsyms` only.
    pub vmlinux: Vec<PathBuf>,
    /// The recording's description of its kernel.
    pub recorded_kernel: RecordedKernel,
    /// The machine that was recorded.
    pub recorded_host: Host,
    /// The machine that we run on.
    pub host: Host,
    /// The recording's paths that are several files.
    pub ambiguous_paths: AmbiguousPaths,
    /// The directory of JIT maps (`perf-PID.map`), `/tmp` unless a test says otherwise.
    pub jit_map_dir: PathBuf,
    /// Whether and how to ask debuginfod servers for debug info that is not on this machine.
    pub debuginfod: Option<Debuginfod>,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self {
            inlines: true,
            demangle: Demangle::Full,
            symfs: None,
            debug_dirs: usual_debug_dirs(),
            kallsyms: "/proc/kallsyms".into(),
            kernel_notes: "/sys/kernel/notes".into(),
            kcore: "/proc/kcore".into(),
            vmlinux: usual_vmlinux(Path::new("/"), prof_procfs::kernel::release()),
            recorded_kernel: RecordedKernel::default(),
            recorded_host: Host::default(),
            host: Host::this(),
            ambiguous_paths: AmbiguousPaths::default(),
            jit_map_dir: "/tmp".into(),
            debuginfod: None,
        }
    }
}

impl SymbolOptions {
    /// With the recorded machine's files below this directory.
    #[must_use]
    pub fn below(mut self, root: PathBuf) -> Self {
        self.debug_dirs.insert(0, root.join("usr/lib/debug"));
        let vmlinux = usual_vmlinux(&root, self.recorded_host.release.clone());
        self.vmlinux.splice(..0, vmlinux);
        self.symfs = Some(root);
        self
    }

    /// The status of what has no build id and is different with each kernel.
    pub(crate) fn other_kernel(&self) -> Option<ModuleStatus> {
        let differs = self.recorded_host.has_other_kernel(&self.host);
        differs.then(|| self.other_host())
    }

    /// The status of what has no build id and was recorded elsewhere.
    pub(crate) fn other_host(&self) -> ModuleStatus {
        ModuleStatus::OtherHost {
            recorded: Box::new(self.recorded_host.clone()),
            found: Box::new(self.host.clone()),
        }
    }
}

/// The system's, and the cache where `perf record` keeps the programs that it has seen.
fn usual_debug_dirs() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let cache = home.map(|home| Path::new(&home).join(".debug"));
    once("/usr/lib/debug".into()).chain(cache).collect()
}

/// The paths of the `vmlinux` of this release in distributions, below a root directory.
fn usual_vmlinux(root: &Path, release: Option<String>) -> Vec<PathBuf> {
    let Some(release) = release else {
        return Vec::new();
    };
    [
        format!("usr/lib/debug/boot/vmlinux-{release}"),
        format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("lib/modules/{release}/vmlinux"),
        format!("lib/modules/{release}/build/vmlinux"),
        format!("boot/vmlinux-{release}"),
    ]
    .map(|path| root.join(path))
    .into()
}

/// A recording's description of its kernel. Without, it is taken to be the running one, unless the
/// recorded [host](SymbolOptions::recorded_host) had another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedKernel {
    /// Its build id (`HEADER_BUILD_ID`, for `[kernel.kallsyms]`): another kernel's symbols are
    /// not used.
    pub build_id: Option<BuildId>,
    /// The absolute address of its `_text` (the page offset of the mapping `[kernel.kallsyms]_text`
    /// that perf records), which changes from boot to boot.
    pub text: Option<u64>,
}

/// How names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Demangle {
    /// As the linker sees them.
    None,
    /// Demangled and made readable, with all template and generic arguments.
    #[default]
    Full,
    /// As `Full`, then without arguments of functions and templates
    /// ([`shorten`](crate::demangling::shorten::shorten)).
    Short,
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
    /// Give up on a file that takes longer in all (`DEBUGINFOD_MAXTIME`, else 15 minutes).
    pub longest: Duration,
    /// Give up on a file of more bytes (`DEBUGINFOD_MAXSIZE`, else 2 GiB).
    pub largest: u64,
}

impl Debuginfod {
    /// The environment's settings, by the variables that all debuginfod clients share; `None`
    /// if `DEBUGINFOD_URLS` is not set.
    pub fn from_environment() -> Option<Self> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// These servers, separated by spaces, and all else as the environment says; `None` if there
    /// is no address of a server among them, or no place for the cache.
    pub fn at(urls: &str) -> Option<Self> {
        Self::from_variables(|name| match name {
            "DEBUGINFOD_URLS" => Some(urls.to_owned()),
            _ => std::env::var(name).ok().filter(|value| !value.is_empty()),
        })
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
        const LONGEST: u64 = 15 * 60;
        const LARGEST: u64 = 2 << 30;
        let urls: Vec<String> = variable("DEBUGINFOD_URLS")?
            .split_ascii_whitespace()
            .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
            .map(str::to_owned)
            .collect();
        let path = |name: &str| variable(name).map(PathBuf::from);
        let cache = path("DEBUGINFOD_CACHE_PATH").or_else(|| {
            let home = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))?;
            Some(home.join("debuginfod_client"))
        })?;
        // Zero stands for none, and an answer without end would fill the disk.
        let number = |name: &str| {
            let number: Option<u64> = variable(name)?.parse().ok();
            number.filter(|&number| number > 0)
        };
        let timeout = variable("DEBUGINFOD_TIMEOUT").and_then(|text| text.parse().ok());
        (!urls.is_empty()).then_some(Self {
            urls,
            cache,
            timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            longest: Duration::from_secs(number("DEBUGINFOD_MAXTIME").unwrap_or(LONGEST)),
            largest: number("DEBUGINFOD_MAXSIZE").unwrap_or(LARGEST),
        })
    }
}

/// Further places where a module's file may be, and what is known of its process.
///
/// The caller knows which processes live and in which mount namespace; this crate does not.
pub trait Places: Send + Sync {
    /// Paths to try, in order, before the module's own path: `/proc/PID/root/...` or
    /// `/proc/PID/map_files/...` of a process that has it mapped. The build id is checked in any
    /// case.
    fn candidates(&self, module: &Module) -> Vec<PathBuf>;

    /// The rights of a process's user, if they are known better than from `/proc` (where they are
    /// gone once the process is).
    fn rights(&self, _pid: Pid) -> Option<Rights> {
        None
    }

    /// The root directory of a process and its PID in there, if they are known better than from
    /// `/proc`.
    fn root(&self, _pid: Pid) -> Option<(PathBuf, Pid)> {
        None
    }

    /// The jitdump files (`jit-PID.dump`) that a process wrote. A recording knows them: a run-time
    /// compiler maps a page of the file as executable, only so that profilers see its path.
    fn jitdumps(&self, _pid: Pid) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What is known of a process's code besides the files that it wrote, as a perf map.
    fn perf_map(&self, _pid: Pid) -> Option<Cow<'_, str>> {
        None
    }
}

/// Nothing is known beyond the recorded paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoOtherPlaces;

impl Places for NoOtherPlaces {
    fn candidates(&self, _module: &Module) -> Vec<PathBuf> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<(&[&str], &str, u64)>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let expected = expected.map(|(urls, cache, seconds)| Debuginfod {
            urls: urls.iter().map(|&url| url.to_owned()).collect(),
            cache: cache.into(),
            timeout: Duration::from_secs(seconds),
            longest: Duration::from_secs(15 * 60),
            largest: 2 << 30,
        });
        assert_eq!(Debuginfod::from_variables(variable), expected);
    }

    #[test]
    fn the_environment_says_where_to_ask() {
        check(&[("HOME", "/h")], None);
        check(&[("HOME", "/h"), ("DEBUGINFOD_URLS", "file:///x")], None);
        check(
            &[("HOME", "/h"), ("DEBUGINFOD_URLS", " http://a https://b/ ")],
            Some((
                &["http://a", "https://b/"],
                "/h/.cache/debuginfod_client",
                90,
            )),
        );
        check(
            &[
                ("XDG_CACHE_HOME", "/c"),
                ("DEBUGINFOD_URLS", "http://a"),
                ("DEBUGINFOD_TIMEOUT", "5"),
                ("DEBUGINFOD_MAXSIZE", "0"),
            ],
            Some((&["http://a"], "/c/debuginfod_client", 5)),
        );
        check(
            &[
                ("DEBUGINFOD_CACHE_PATH", "/d"),
                ("DEBUGINFOD_URLS", "http://a"),
            ],
            Some((&["http://a"], "/d", 90)),
        );
    }
}
