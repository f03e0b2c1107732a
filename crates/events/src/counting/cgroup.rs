//! The folder of a cgroup, for perf events.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use prof_procfs::settings::{Mount, mounts};
use thiserror::Error;

/// Why a cgroup cannot be counted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// No file system of cgroups that perf events can use.
    #[error(
        "no cgroup file system for perf events is mounted: cgroup2, or cgroup with the \
         controller perf_event"
    )]
    NotMounted,
    /// No such cgroup.
    #[error("there is no cgroup {name:?} below {}: {source}", root.display())]
    NotFound {
        /// The name as given.
        name: String,
        /// Where the file system is mounted.
        root: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Opens the folder of a cgroup: an absolute path below the mount point, or a path relative to it,
/// as perf takes it.
///
/// # Errors
///
/// There is no such cgroup, or no cgroup file system.
pub fn find_cgroup(name: &str) -> Result<File, CgroupError> {
    let root = mount_point(mounts()).ok_or(CgroupError::NotMounted)?;
    let path = match Path::new(name) {
        path if path.starts_with(&root) => path.to_path_buf(),
        path => root.join(path.strip_prefix("/").unwrap_or(path)),
    };
    let open = || {
        let folder = File::open(&path)?;
        match folder.metadata()?.is_dir() {
            true => Ok(folder),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    };
    open().map_err(|source| CgroupError::NotFound {
        name: name.to_owned(),
        root: root.clone(),
        source,
    })
}

/// The mount of the cgroups for perf events: those of the controller perf_event if it has a
/// hierarchy of its own (version 1), else version 2.
fn mount_point(mounts: Vec<Mount>) -> Option<PathBuf> {
    let own = |it: &&Mount| it.kind == "cgroup" && it.has_option("perf_event");
    let found = mounts.iter().find(own);
    let found = found.or_else(|| mounts.iter().find(|it| it.kind == "cgroup2"));
    Some(found?.point.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points() {
        let check = |mounts: &str, expected: Option<&str>| {
            let lines = mounts.lines().filter_map(Mount::parse).collect();
            assert_eq!(mount_point(lines), expected.map(PathBuf::from), "{mounts}");
        };
        let v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let v1_perf = "cgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\n";
        let v2 = "cgroup2 /sys/fs/cgroup/my\\040own cgroup2 rw 0 0\n";
        check("", None);
        check(v1, None);
        check(&format!("{v1}{v2}"), Some("/sys/fs/cgroup/my own"));
        check(&format!("{v2}{v1_perf}"), Some("/sys/fs/cgroup/perf_event"));
        check("garbage\n\n", None);
    }
}
