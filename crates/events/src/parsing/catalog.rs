//! The places where names are looked up.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::system::tracefs;

/// The places of names that the kernel does not fix: sysfs, tracefs, and the folders of libraries
/// and programs.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The PMUs, each a folder with the files `type`, `format/*` and `events/*`.
    pub devices: PathBuf,
    /// Where tracefs may be mounted; the first one that exists counts.
    pub tracefs: Vec<PathBuf>,
    /// The cache of the dynamic linker, which knows where libraries are.
    pub library_cache: PathBuf,
    /// The folders of libraries that are not in the cache.
    pub libraries: Vec<PathBuf>,
    /// The folders of programs, as in `$PATH`.
    pub programs: Vec<PathBuf>,
}

impl Catalog {
    /// This machine.
    pub fn system() -> Self {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        Self {
            devices: "/sys/bus/event_source/devices".into(),
            tracefs: tracefs::folders(),
            library_cache: "/etc/ld.so.cache".into(),
            libraries: paths(&[
                "/lib/x86_64-linux-gnu",
                "/usr/lib/x86_64-linux-gnu",
                "/lib64",
                "/usr/lib64",
                "/lib",
                "/usr/lib",
            ]),
            programs: std::env::split_paths(&path).collect(),
        }
    }

    /// The folder in which every system of tracepoints has a folder, or why there is none.
    pub(super) fn tracepoints(&self) -> Result<PathBuf, (PathBuf, std::io::Error)> {
        let mut refused = None;
        for root in &self.tracefs {
            let events = root.join("events");
            match fs::read_dir(&events) {
                Ok(_) => return Ok(events),
                Err(error) => refused.get_or_insert((events, error)),
            };
        }
        let nowhere = || {
            (
                PathBuf::from("tracefs"),
                std::io::ErrorKind::NotFound.into(),
            )
        };
        Err(refused.unwrap_or_else(nowhere))
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::system()
    }
}

/// The names in a folder, in order; none if it cannot be read.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
