//! Opening files that the target left in a directory where anyone may leave files.
//!
//! Names from such a file end up in front of the user, who may be root, so it must belong to the
//! target's user or to root, and no symbolic link is followed to it: neither the file's name nor,
//! within a container, anything on the way may lead out.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prof_model::Pid;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::options::Places;
use crate::status::ModuleStatus;

/// The user that a process belongs to, if it can be known.
pub(super) fn owner(pid: Pid, places: &dyn Places) -> Option<u32> {
    places.owner(pid).or_else(|| {
        let process = fs::metadata(format!("/proc/{pid}")).ok()?;
        Some(process.uid())
    })
}

/// Opens a file that the process should have left. `Err(None)` if there is none.
pub(super) fn open(
    path: &Path,
    pid: Pid,
    owner: Option<u32>,
) -> Result<File, Option<ModuleStatus>> {
    let opened = rustix::fs::open(path, FLAGS, Mode::empty());
    check(opened, path, pid, owner)
}

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK);

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
            let root = format!("/proc/{pid}/root").into();
            (root, inner_pid(pid).unwrap_or(pid))
        });
        MapPlace::Inside {
            root,
            name: directory.join(format!("perf-{inner}.map")),
        }
    });
    inside.into_iter().chain([here]).collect()
}

/// The process's id in its own PID namespace: the last one of `NSpid` in its status.
fn inner_pid(pid: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

impl MapPlace {
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Inside { root, name } => root.join(name),
            Self::Here(path) => path.clone(),
        }
    }

    pub(super) fn open(&self, pid: Pid, owner: Option<u32>) -> Result<File, Option<ModuleStatus>> {
        match self {
            Self::Here(path) => open(path, pid, owner),
            Self::Inside { root, name } => {
                let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let opened = rustix::fs::open(root, directory, Mode::empty()).and_then(|root| {
                    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                    rustix::fs::openat2(root, name, FLAGS, Mode::empty(), within)
                });
                check(opened, &self.path(), pid, owner)
            }
        }
    }
}

fn check(
    opened: rustix::io::Result<rustix::fd::OwnedFd>,
    path: &Path,
    pid: Pid,
    owner: Option<u32>,
) -> Result<File, Option<ModuleStatus>> {
    let untrusted = |reason: String| {
        Some(ModuleStatus::UntrustedJitMap {
            path: path.into(),
            reason,
        })
    };
    let file = match opened {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => return Err(untrusted("it is a symbolic link".into())),
        Err(rustix::io::Errno::ACCESS) => {
            return Err(Some(ModuleStatus::NoPermission { path: path.into() }));
        }
        Err(_) => return Err(None),
    };
    let metadata = file
        .metadata()
        .map_err(|error| untrusted(error.to_string()))?;
    if !metadata.is_file() {
        return Err(untrusted("it is not a regular file".into()));
    }
    let ours = rustix::process::geteuid().as_raw();
    let user = metadata.uid();
    match owner {
        _ if user == 0 => Ok(file),
        Some(owner) if user == owner => Ok(file),
        Some(owner) => Err(untrusted(format!(
            "it belongs to user {user}, process {pid} to user {owner}"
        ))),
        None if user == ours => Ok(file),
        None => Err(untrusted(format!(
            "it belongs to user {user}, and whose process {pid} was is not known any more"
        ))),
    }
}
