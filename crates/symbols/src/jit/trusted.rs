//! Opening files that the target left in a directory where anyone may leave files.
//!
//! Names from such a file end up in front of the user, who may be root, so it must belong to the
//! target's user or to root, and no symbolic link is followed to it: neither the file's name nor,
//! within a container, anything on the way may lead out.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prof_filemap::foreign::{self, Links};
use prof_filemap::{Error, Rights};
use prof_model::Pid;
use prof_procfs::Task;

use crate::options::Places;
use crate::status::ModuleStatus;

/// The rights of the user that a process belongs to, if they can be known.
pub(super) fn rights(pid: Pid, places: &dyn Places) -> Option<Rights> {
    places.rights(pid).or_else(|| Rights::of_process(pid).ok())
}

/// Opens a file that the process should have left. `Err(None)` if there is none.
pub(super) fn open(
    path: &Path,
    pid: Pid,
    rights: Option<&Rights>,
) -> Result<File, Option<ModuleStatus>> {
    // In a directory of ours, only we and root can mount files that others may not read.
    let opened = foreign::open_with(path, None, Links::Refuse);
    check(opened, path, pid, rights)
}

/// A place where a process's perf map may be.
pub(super) enum MapPlace {
    /// Below the root directory of the process, which may be in a container.
    Inside { root: PathBuf, name: PathBuf },
    /// In a directory of ours.
    Here(PathBuf),
}

/// The places to look for a process's perf map, in order.
pub(super) fn map_places(pid: Pid, places: &dyn Places, directory: &Path) -> Vec<MapPlace> {
    let here = MapPlace::Here(directory.join(format!("perf-{pid}.map")));
    let inside = directory.strip_prefix("/").ok().map(|directory| {
        let (root, inner) = places.root(pid).unwrap_or_else(|| {
            let process = Task::of(pid);
            let inner_pid = process.status().ok().and_then(|it| it.inner_pid());
            (process.root(), inner_pid.unwrap_or(pid))
        });
        MapPlace::Inside {
            root,
            name: directory.join(format!("perf-{inner}.map")),
        }
    });
    inside.into_iter().chain([here]).collect()
}

impl MapPlace {
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Inside { root, name } => root.join(name),
            Self::Here(path) => path.clone(),
        }
    }

    pub(super) fn open(
        &self,
        pid: Pid,
        rights: Option<&Rights>,
    ) -> Result<File, Option<ModuleStatus>> {
        let path = self.path();
        match self {
            Self::Here(path) => open(path, pid, rights),
            Self::Inside { .. } => {
                let opened = foreign::open_with(&path, rights, Links::Refuse);
                check(opened, &path, pid, rights)
            }
        }
    }
}

fn check(
    opened: Result<File, Error>,
    path: &Path,
    pid: Pid,
    rights: Option<&Rights>,
) -> Result<File, Option<ModuleStatus>> {
    let untrusted = |reason: String| {
        Some(ModuleStatus::UntrustedJitMap {
            path: path.into(),
            reason,
        })
    };
    let file = match opened {
        Ok(file) => file,
        Err(Error::Link { .. }) => return Err(untrusted("it is a symbolic link".into())),
        Err(Error::NotRegular { .. } | Error::Directory { .. }) => {
            return Err(untrusted("it is not a regular file".into()));
        }
        Err(error) if error.io_kind() == Some(ErrorKind::PermissionDenied) => {
            return Err(Some(ModuleStatus::NoPermission { path: path.into() }));
        }
        Err(_) => return Err(None),
    };
    let metadata = file
        .metadata()
        .map_err(|error| untrusted(error.to_string()))?;
    if metadata.nlink() > 1 {
        return Err(untrusted("the file has another name elsewhere".into()));
    }
    let ours = rustix::process::geteuid().as_raw();
    let user = metadata.uid();
    match rights.map(Rights::user) {
        _ if user == 0 => Ok(file),
        Some(owner) if user == owner => Ok(file),
        Some(owner) => Err(untrusted(format!(
            "it belongs to user {user}, process {pid} to user {owner}"
        ))),
        None if user == ours => Ok(file),
        None => Err(untrusted(format!(
            "it belongs to user {user}, and the owner of process {pid} is unknown"
        ))),
    }
}
