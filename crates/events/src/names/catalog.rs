//! Where names are looked up.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::error::ParseError;
use super::spec::EventGroup;
use super::{library, parse, symbol};
use crate::system::tracefs;

/// Where names are looked up that the kernel does not fix: sysfs, tracefs, and the folders of
/// libraries and programs.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The PMUs, each a folder with the files `type`, `format/*` and `events/*`.
    pub devices: PathBuf,
    /// Where tracefs may be mounted; the first one that exists counts.
    pub tracefs: Vec<PathBuf>,
    /// The cache of the dynamic linker, which knows where libraries are.
    pub library_cache: PathBuf,
    /// Where libraries are looked for that the cache does not know.
    pub libraries: Vec<PathBuf>,
    /// Where programs are looked for, as in `$PATH`.
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

    /// Reads a list of events: names separated by commas, groups in braces.
    ///
    /// ```
    /// use prof_events::names::Catalog;
    ///
    /// let groups = Catalog::system().parse("task-clock,{page-faults:u,minor-faults:u}")?;
    /// assert_eq!(groups.len(), 2);
    /// assert_eq!(groups[1].events[0].to_string(), "page-faults:u");
    ///
    /// let error = Catalog::system().parse("page-fualts").unwrap_err();
    /// assert!(error.to_string().contains("did you mean page-faults?"));
    /// # Ok::<(), prof_events::names::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong, and where; also when a PMU, tracepoint, file or function cannot be found on
    /// this machine.
    pub fn parse(&self, text: &str) -> Result<Vec<EventGroup>, ParseError> {
        parse::list(text, self)
    }

    /// Those of these functions that the file has, by their names for the linker; none if there is no
    /// such file. The file is named as in `uprobe:FILE:FUNCTION`.
    pub(crate) fn functions_in(&self, file: &str, wanted: &HashSet<&str>) -> HashSet<String> {
        match library::find(self, file) {
            Ok(path) => symbol::functions_in(&path, wanted),
            Err(_) => HashSet::new(),
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
