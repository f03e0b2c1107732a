//! Finds tracefs: where it is mounted, or in a mount of our own.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where tracefs is usually mounted.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The folders in which tracefs may be; the first one that exists counts.
///
/// Root gets a private mount if there is none. It is not attached, so that no other process sees
/// it, and ends with the process.
pub(crate) fn folders() -> Vec<PathBuf> {
    static PRIVATE: OnceLock<io::Result<OwnedFd>> = OnceLock::new();
    let mut folders: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).collect();
    let is_mounted = |folder: &PathBuf| fs::exists(folder.join("events")).unwrap_or(true);
    if !folders.iter().any(is_mounted)
        && let Ok(mount) = PRIVATE.get_or_init(mount)
    {
        folders.push(prof_procfs::descriptor(mount));
    }
    folders
}

/// Mounts tracefs without attaching it (Linux 5.2). EPERM for all but root.
fn mount() -> io::Result<OwnedFd> {
    let tracefs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(tracefs.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(
        tracefs.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_needs_no_mounted_tracefs() {
        let Ok(mount) = mount() else {
            // A plain user, or a kernel without tracing.
            return;
        };
        let root = prof_procfs::descriptor(&mount);
        assert!(fs::exists(root.join("events")).unwrap());
        let mounts = prof_procfs::settings::mounts();
        assert!(!mounts.iter().any(|mount| mount.point == root));
    }
}
