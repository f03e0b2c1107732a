//! Opens files that code is mapped from, while their processes live.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use prof_filemap::Rights;
use prof_filemap::foreign::{self, Links};
use prof_model::{Module, Pid};
use prof_procfs::{Task, without_deleted};

use crate::output::synthesize::build_id_of;

/// Opens the file that process `pid` has mapped at these addresses, in one of these ways: by its
/// path as the process sees it, by the mapping itself (which takes privileges, and works for
/// deleted files and memfds), as the program that the process runs, or by its path as we see it.
/// Another file is not accepted. Paths are followed with the rights of the process's user.
pub(crate) fn open_mapped(pid: Pid, module: &Module, addresses: &Range<u64>) -> io::Result<File> {
    let process = Task::of(pid);
    let path = without_deleted(&module.path);
    let mapped = process.mapped_file(addresses);
    let exe = process.exe();
    let is_exe = || fs::read_link(&exe).is_ok_and(|exe| without_deleted(&exe) == path);
    let ways: [&dyn Fn() -> io::Result<File>; 4] = [
        &|| Ok(foreign::open(&process.below_root(path))?),
        &|| Ok(foreign::open(&mapped)?),
        &|| match is_exe() {
            true => Ok(foreign::open(&exe)?),
            false => Err(io::ErrorKind::NotFound.into()),
        },
        &|| open_by_own_path(pid, path),
    ];
    let mut problem = io::Error::from(io::ErrorKind::NotFound);
    for way in ways {
        match way() {
            Ok(file) if is(&file, module) => return Ok(file),
            Ok(_) => problem = io::Error::other("another file has replaced it since it was mapped"),
            Err(_) => {}
        }
    }
    Err(problem)
}

/// Opens a path as we see it with the rights of the process's user. If the process has ended, its
/// user is unknown: then only files that everybody may read are opened.
fn open_by_own_path(pid: Pid, path: &Path) -> io::Result<File> {
    const OTHERS_MAY_READ: u32 = 0o004;
    if let Ok(rights) = Rights::of_process(pid) {
        return Ok(foreign::open_with(path, Some(&rights), Links::Follow)?);
    }
    let file = foreign::open_with(path, None, Links::Follow)?;
    match file.metadata()?.mode() & OTHERS_MAY_READ != 0 {
        true => Ok(file),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether this is the mapped file, as far as the recording identifies it.
fn is(file: &File, module: &Module) -> bool {
    if let Some(recorded) = module.build_id {
        let found = file.try_clone().ok().and_then(build_id_of);
        return found == Some(recorded);
    }
    let Some(identity) = module.identity else {
        return true;
    };
    // Not the device: some file systems report another one than the mapping.
    file.metadata()
        .is_ok_and(|found| found.ino() == identity.inode)
}
