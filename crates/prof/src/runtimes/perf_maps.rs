//! The perf maps that processes leave in `/tmp`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use prof_model::Pid;
use prof_perfdata::{Record, Recording};
use prof_procfs::{Task, descriptor};
use prof_recorder::PinnedFiles;
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// Where runtimes write perf maps.
pub(super) const DIRECTORY: &str = "/tmp";

/// A perf map that a recording caused.
#[derive(Debug)]
pub(super) struct PerfMap {
    /// The process that wrote it.
    pub(super) pid: Pid,
    path: PathBuf,
    /// Keeps the directory open that the path leads through.
    _directory: Option<OwnedFd>,
}

impl PerfMap {
    /// A map at a path through this directory.
    pub(super) fn inside(pid: Pid, path: PathBuf, directory: OwnedFd) -> Self {
        Self {
            pid,
            path,
            _directory: Some(directory),
        }
    }

    /// The map of a process that has ended, if it is a file of ours that was written after `begin`.
    pub(super) fn left_by(pid: Pid, begin: SystemTime) -> Option<Self> {
        let path = Path::new(DIRECTORY).join(file_name(pid));
        // The attributes of the entry itself, not of a link's target.
        let found = fs::symlink_metadata(&path).ok()?;
        let is_left = found.is_file()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.modified().is_ok_and(|changed| changed >= begin)
            && !runs(&pid);
        is_left.then_some(Self {
            pid,
            path,
            _directory: None,
        })
    }

    /// Whether .NET wrote it, which may be a part of any executable: its own library has functions
    /// in each map.
    pub(super) fn is_of_dotnet(&self) -> bool {
        const SIZE: u64 = 1 << 20;
        const LIBRARY: &str = "[System.Private.CoreLib]";
        let mut start = Vec::new();
        let file = File::open(&self.path);
        let read = file.and_then(|file| file.take(SIZE).read_to_end(&mut start));
        read.is_ok() && String::from_utf8_lossy(&start).contains(LIBRARY)
    }

    /// Removes the file; errors are ignored.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Removes the list of images that .NET writes beside it, if that was written after `begin` and
    /// is of the same user; errors are ignored.
    pub(super) fn remove_images(&self, begin: SystemTime) {
        let name = self.path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().replacen("perf-", "perfinfo-", 1);
        let path = self.path.with_file_name(name);
        // The attributes of the entries themselves, not of a link's target.
        let attributes = [&self.path, &path].map(fs::symlink_metadata);
        if let [Ok(map), Ok(images)] = attributes
            && images.is_file()
            && images.uid() == map.uid()
            && images.modified().is_ok_and(|changed| changed >= begin)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// The perf maps of our user in `/tmp`, by process.
#[derive(Debug, Default)]
pub(super) struct PerfMaps {
    maps: BTreeMap<Pid, Version>,
    /// Those of processes that ran when the maps were read.
    running: BTreeSet<Pid>,
    /// `None` if they were not read.
    pub(super) read_at: Option<SystemTime>,
}

/// The attributes that change when a file is rewritten: its inode and its change time.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    changed: (i64, i64),
}

/// Whether a process that runs goes on writing to its map.
fn runs(pid: &Pid) -> bool {
    Task::of(*pid).exists()
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl PerfMaps {
    /// The perf maps that exist now.
    pub(super) fn read() -> Self {
        Self::read_in(Path::new(DIRECTORY))
    }

    fn read_in(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let user = rustix::process::geteuid().as_raw();
        let found = entries.filter_map(|entry| {
            let pid = pid_of(entry.file_name().to_str()?)?;
            // The attributes of the entry itself, not of a link's target.
            let metadata = entry.metadata().ok()?;
            let is_ours = metadata.is_file() && metadata.uid() == user;
            is_ours.then(|| (pid, Version::of(&metadata)))
        });
        let maps: BTreeMap<Pid, Version> = found.collect();
        Self {
            read_at: Some(SystemTime::now()),
            running: maps.keys().copied().filter(runs).collect(),
            maps,
        }
    }

    /// The perf maps that are new or have changed, but for those of processes that ran before.
    pub(super) fn changed_since(&self, before: &Self) -> impl Iterator<Item = PerfMap> {
        let changed = self.maps.iter();
        changed
            .filter(|&(pid, version)| {
                before.maps.get(pid) != Some(version) && !before.running.contains(pid)
            })
            .map(|(&pid, _)| PerfMap {
                pid,
                path: Path::new(DIRECTORY).join(file_name(pid)),
                _directory: None,
            })
    }
}

/// The perf maps of these processes that are in a container, or in another PID namespace, and that
/// are new or have changed.
pub(super) fn inside(
    pinned: &PinnedFiles,
    pids: &BTreeMap<Pid, &str>,
    before: &PerfMaps,
) -> Vec<PerfMap> {
    let processes = pinned.processes.iter();
    let asked = processes.filter(|process| pids.contains_key(&process.pid));
    let found = asked.filter_map(|process| {
        let root = pinned.roots.get(process.root)?;
        let directory = open_tmp(&descriptor(&root.directory)).ok()?;
        let path = descriptor(&directory).join(file_name(process.inner_pid));
        // The attributes of the entry itself, not of a link's target.
        let metadata = fs::symlink_metadata(&path).ok()?;
        let is_its_own = metadata.is_file() && metadata.uid() == process.rights.user();
        let is_new = metadata.modified().ok()? >= before.read_at?
            && before.maps.get(&process.inner_pid) != Some(&Version::of(&metadata));
        let map = || PerfMap::inside(process.pid, path, directory);
        (is_its_own && is_new).then(map)
    });
    found.collect()
}

/// The directory `/tmp` below a root directory, which may be a container's: no link in it leads
/// out.
pub(super) fn open_tmp(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(
        &root,
        "tmp",
        flags,
        Mode::empty(),
        inside,
    )?)
}

/// The processes of these recordings in which a setting made a runtime write a map, by a file that
/// each has mapped, and that setting. A recording that cannot be read yields none.
pub(super) fn requested_processes(
    recordings: &[PathBuf],
    setting: impl Fn(Pid, &Path) -> Option<&'static str>,
) -> BTreeMap<Pid, &'static str> {
    let mut found = BTreeMap::new();
    for path in recordings {
        let Ok(mut recording) = Recording::open(path) else {
            continue;
        };
        while let Some(record) = recording.next() {
            if let Record::Mmap(mmap) = record
                && let Some(setting) = setting(mmap.pid, Path::new(mmap.path))
            {
                found.insert(mmap.pid, setting);
            }
        }
    }
    found
}

/// The name of a process's perf map.
pub(super) fn file_name(pid: Pid) -> String {
    format!("perf-{pid}.map")
}

fn pid_of(name: &str) -> Option<Pid> {
    let pid = name.strip_prefix("perf-")?.strip_suffix(".map")?;
    pid.parse().ok().filter(|pid| *name == file_name(*pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_maps_that_changed_are_ours() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let read = || PerfMaps::read_in(directory.path());
        // No process has these PIDs: the kernel's PID_MAX_LIMIT is lower.
        write("perf-4194305.map", "old");
        write("perf-02.map", "not of a process");
        write("perf-x.map", "neither");
        let own = std::process::id();
        write(&format!("perf-{own}.map"), "of a process that goes on");
        let before = read();
        assert_eq!(before.maps.len(), 2);
        write(&format!("perf-{own}.map"), "of a process that has gone on");
        assert_eq!(read().changed_since(&before).count(), 0);
        write("perf-4194307.map", "new");
        // A new file with this name is another file, whatever the resolution of times is.
        write("other", "new");
        fs::rename(
            directory.path().join("other"),
            directory.path().join("perf-4194305.map"),
        )
        .unwrap();
        let pids: Vec<Pid> = read().changed_since(&before).map(|map| map.pid).collect();
        assert_eq!(pids, [4_194_304 + 1, 4_194_304 + 3]);
    }

    #[test]
    fn only_new_lists_of_images_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let images = directory.path().join("perfinfo-1.map");
        let map = PerfMap {
            pid: 1,
            path: directory.path().join("perf-1.map"),
            _directory: None,
        };
        fs::write(&map.path, "").unwrap();
        fs::write(&images, "ImageLoad").unwrap();
        let hour = std::time::Duration::from_secs(3600);
        map.remove_images(SystemTime::now() + hour);
        assert!(images.exists());
        map.remove_images(SystemTime::now() - hour);
        assert!(!images.exists());
    }

    #[test]
    fn maps_of_dotnet_are_known_by_its_library() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("perf-1.map");
        let mut map = PerfMap {
            pid: 1,
            path,
            _directory: None,
        };
        assert!(!map.is_of_dotnet());
        fs::write(&map.path, "7f00 10 JS:*f a.js:1:1\n").unwrap();
        assert!(!map.is_of_dotnet());
        let name = "void [System.Private.CoreLib] System.AppContext::Setup(char**)[PreJIT]";
        fs::write(&map.path, format!("7f00 10 {name}\n")).unwrap();
        assert!(map.is_of_dotnet());
        map.path = directory.path().to_owned();
        assert!(!map.is_of_dotnet());
    }
}
