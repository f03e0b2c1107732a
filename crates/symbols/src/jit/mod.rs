//! Code that a process made at run time, named by what its run-time compiler left behind.

mod code;
mod dump;
mod map;
mod trusted;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use prof_model::{ElfAddress, FileOffset, Pid};

use crate::code::{Code, CodeError, Machine};
use crate::demangling::SharedNames;
use crate::options::{Places, SymbolOptions};
use crate::query::{Detail, Resolved, SymbolFrame};
use crate::status::ModuleStatus;
use code::{Extent, JitCode};

/// Names absolute addresses of a process's run-time code.
pub(crate) fn resolve(
    pid: Pid,
    addresses: &[u64],
    places: &dyn Places,
    options: &SymbolOptions,
) -> Resolved {
    let known = places.perf_map(pid);
    let (mut code, path) = match read(pid, places, options) {
        Ok(log) => (log.code, Some(log.path)),
        Err(_) if known.is_some() => (JitCode::default(), None),
        Err(status) => return Resolved::unnamed(status, addresses.len()),
    };
    if let Some(known) = known {
        map::add(&mut code, known.as_bytes());
    }
    let mut names = SharedNames::new(options.demangle);
    let status = match (&path, code.is_full()) {
        (Some(path), true) => ModuleStatus::JitMapTooLarge { path: path.clone() },
        _ => ModuleStatus::Named,
    };
    let mut resolved = Resolved::unnamed(status, 0);
    resolved.detail = Detail::Functions;
    resolved.file = path;
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

/// The machine code of the functions that hold these addresses, each once, by address.
pub(crate) fn code(
    pid: Pid,
    addresses: &[u64],
    places: &dyn Places,
    options: &SymbolOptions,
) -> Result<Vec<Code>, CodeError> {
    let log = read(pid, places, options).map_err(CodeError::File)?;
    let extents: BTreeMap<u64, Extent> = addresses
        .iter()
        .filter_map(|&address| log.code.extent(address))
        .map(|extent| (extent.start, extent))
        .collect();
    if extents.is_empty() {
        return Err(CodeError::NoSymbol);
    }
    let code = |extent: &Extent| {
        let place = extent.bytes.as_ref()?;
        let size = (place.end - place.start).min(Code::LONGEST);
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        log.file.read_exact_at(&mut bytes, place.start).ok()?;
        Some(Code {
            offset: FileOffset(extent.start),
            address: ElfAddress(extent.start),
            bytes,
            left_out: extent.end - extent.start - size,
            machine: log.code.machine.unwrap_or(Machine::Other),
        })
    };
    let codes: Vec<Code> = extents.values().filter_map(code).collect();
    match codes.is_empty() {
        true => Err(CodeError::NoJitDump { path: log.path }),
        false => Ok(codes),
    }
}

/// The code that a file of a run-time compiler describes.
struct Log {
    code: JitCode,
    path: PathBuf,
    file: File,
}

/// The process's code, from its jitdump (which is richer) or else its perf map.
/// Of another machine's processes, no file here tells anything.
fn read(pid: Pid, places: &dyn Places, options: &SymbolOptions) -> Result<Log, ModuleStatus> {
    if options.recorded_host.is_elsewhere(&options.host) {
        return Err(options.other_host());
    }
    let directory = &options.jit_map_dir;
    let rights = trusted::rights(pid, places);
    let mut untrusted = None;
    for path in places.jitdumps(pid) {
        match trusted::open(&path, pid, rights.as_ref()) {
            Ok(file) => match dump::read(&file) {
                Some(code) => return Ok(Log { code, path, file }),
                None => continue,
            },
            Err(problem) => untrusted = untrusted.or(problem),
        }
    }
    for place in trusted::map_places(pid, places, directory) {
        match place.open(pid, rights.as_ref()) {
            Ok(file) => {
                return Ok(Log {
                    code: map::read(&file),
                    path: place.path(),
                    file,
                });
            }
            Err(problem) => untrusted = untrusted.or(problem),
        }
    }
    Err(untrusted.unwrap_or_else(|| ModuleStatus::NoJitMap {
        pid,
        path: directory.join(format!("perf-{pid}.map")),
    }))
}
