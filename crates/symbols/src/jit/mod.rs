//! Code that a process made at run time, named by what its run-time compiler left behind.

mod code;
mod dump;
mod map;
mod trusted;

use std::path::{Path, PathBuf};

use prof_model::Pid;

use crate::names::Names;
use crate::options::{Places, SymbolOptions};
use crate::query::{Detail, Resolved, SymbolFrame};
use crate::status::ModuleStatus;
use code::JitCode;

/// Names absolute addresses of a process's run-time code.
pub(crate) fn resolve(
    pid: Pid,
    addresses: &[u64],
    places: &dyn Places,
    options: &SymbolOptions,
) -> Resolved {
    let (code, path) = match read(pid, places, &options.jit_map_dir) {
        Ok(found) => found,
        Err(status) => return Resolved::unnamed(status, addresses.len()),
    };
    let mut names = Names::new(options.demangle);
    let mut resolved = Resolved::unnamed(ModuleStatus::Named, 0);
    resolved.detail = Detail::Functions;
    resolved.file = Some(path);
    for &address in addresses {
        resolved.push(code.find(address).map(|found| SymbolFrame {
            function: names.function(found.name.as_bytes()),
            file: found.place.map(|(file, _)| names.file(file)),
            line: found.place.map(|(_, line)| line),
            inlined: false,
        }));
    }
    resolved
}

/// The process's code, from its jitdump (which is richer) or else its perf map.
fn read(
    pid: Pid,
    places: &dyn Places,
    directory: &Path,
) -> Result<(JitCode, PathBuf), ModuleStatus> {
    let owner = trusted::owner(pid, places);
    let mut untrusted = None;
    for path in places.jitdumps(pid) {
        match trusted::open(&path, pid, owner) {
            Ok(file) => match dump::read(&file) {
                Some(code) => return Ok((code, path)),
                None => continue,
            },
            Err(problem) => untrusted = untrusted.or(problem),
        }
    }
    for place in trusted::map_places(pid, places, directory) {
        match place.open(pid, owner) {
            Ok(file) => return Ok((map::read(&file), place.path())),
            Err(problem) => untrusted = untrusted.or(problem),
        }
    }
    Err(untrusted.unwrap_or_else(|| ModuleStatus::NoJitMap {
        pid,
        path: directory.join(format!("perf-{pid}.map")),
    }))
}
