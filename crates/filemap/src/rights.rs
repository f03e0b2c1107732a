//! The rights of another process's user.

use std::io::{self, ErrorKind};

use prof_procfs::{Status, Task};
use rustix::process::{Gid, getegid, geteuid, getgroups};

/// The user and the groups with which a process opens files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

impl Rights {
    /// The rights of a process.
    ///
    /// # Errors
    /// The process is gone, or `/proc` does not show it.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        let status = Task::of(pid).status()?;
        Self::of_status(&status).ok_or(ErrorKind::InvalidData.into())
    }

    /// Reads them from `/proc/PID/status`. The owner of `/proc/PID` is root for a process that may
    /// not be traced, whatever its user is.
    pub fn of_status(status: &Status) -> Option<Self> {
        Some(Self {
            user: status.users()?.file_system,
            group: status.groups()?.file_system,
            groups: status.supplementary_groups()?,
        })
    }

    /// The user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Calls `work` with these rights to files instead of ours, on this thread. Only root changes
    /// its rights: a plain user can read only files of that user anyway.
    ///
    /// # Errors
    /// The rights cannot be changed, or `work` fails.
    pub fn with<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if !geteuid().is_root() || self.user == 0 {
            return work();
        }
        let _guard = Guard::enter(self)?;
        work()
    }
}

/// Restores our own rights when it is dropped. It must stay on its thread, and does: nothing hands
/// it out.
struct Guard {
    groups: Vec<u32>,
}

impl Guard {
    fn enter(rights: &Rights) -> io::Result<Self> {
        if capabilities_stay() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let guard = Self {
            groups: getgroups()?.into_iter().map(Gid::as_raw).collect(),
        };
        set_groups(&rights.groups)?;
        // From here on, dropping the guard restores everything. The kernel removes the capabilities
        // that override permissions when the user is not 0, and restores them with user 0.
        set_group(rights.group);
        set_user(rights.user);
        // An invalid id changes nothing and returns the current one.
        match (set_user(u32::MAX), set_group(u32::MAX)) == (rights.user, rights.group) {
            true => Ok(guard),
            false => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        set_user(geteuid().as_raw());
        set_group(getegid().as_raw());
        // This cannot fail with the capability that changed them; with fewer groups less is
        // readable.
        let _ = set_groups(&self.groups);
    }
}

/// Whether this thread keeps its capabilities when its user changes (`SECBIT_NO_SETUID_FIXUP`).
fn capabilities_stay() -> bool {
    const NO_SETUID_FIXUP: i32 = 1 << 2;
    // SAFETY: this takes no pointers and only returns a number.
    let bits = unsafe { libc::prctl(libc::PR_GET_SECUREBITS) };
    bits < 0 || bits & NO_SETUID_FIXUP != 0
}

/// Sets the groups of this thread only, unlike the C library's `setgroups`.
fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the kernel reads as many numbers as the slice has.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the file-system user of this thread; returns the previous one.
fn set_user(user: u32) -> u32 {
    // SAFETY: this takes no pointers. The answer is an id, not an error.
    (unsafe { libc::setfsuid(user) }) as u32
}

fn set_group(group: u32) -> u32 {
    // SAFETY: as above.
    (unsafe { libc::setfsgid(group) }) as u32
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const STATUS: &str =
        "Name:\tcat\nUid:\t0\t1\t2\t1000\nGid:\t0\t0\t0\t100\nGroups:\t4 24 \nX:\n";

    #[test]
    fn the_ids_for_files_are_the_last() {
        let rights = Rights {
            user: 1000,
            group: 100,
            groups: vec![4, 24],
        };
        assert_eq!(Rights::of_status(&Status::parse(STATUS)), Some(rights));
        let ours = Rights::of_process(std::process::id() as i32).unwrap();
        assert_eq!(ours.user(), geteuid().as_raw());
        assert_eq!(Rights::of_status(&Status::parse("Uid:\t0\n")), None);
    }

    #[test]
    fn files_of_root_are_out_of_reach_and_in_reach_again() {
        if !geteuid().is_root() {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let groups = getgroups().unwrap();
        let nobody = Rights {
            user: 65534,
            group: 65534,
            groups: Vec::new(),
        };
        let denied = nobody.with(|| File::open(file.path())).unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
        File::open(file.path()).unwrap();
        assert_eq!(getgroups().unwrap(), groups);
        // By their group, only if it is one of theirs.
        let mut member = nobody.clone();
        member.groups = vec![12345];
        std::os::unix::fs::chown(file.path(), None, Some(12345)).unwrap();
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(file.path(), mode).unwrap();
        nobody.with(|| File::open(file.path())).unwrap_err();
        member.with(|| File::open(file.path())).unwrap();
    }
}
