//! Whether nobody else can take the names of perf maps in `/tmp`.
//!
//! A runtime opens its map by this name, and follows a link that another user has put there. What
//! the command starts inherits the variable, and writes maps whose names cannot be reserved before.
//! So a map is requested only where no name can be taken.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;

use prof_procfs::settings::setting;
use rustix::fs::Access;

use super::perf_maps::DIRECTORY;

const ROOT: u32 = 0;

/// Whether we may write perf maps, and all of their names are ours.
pub(super) fn are_ours() -> bool {
    let user = rustix::process::geteuid().as_raw();
    // .NET would not start without a place for its other files.
    rustix::fs::access(DIRECTORY, Access::WRITE_OK).is_ok()
        && fs::metadata(DIRECTORY)
            .is_ok_and(|found| TmpDirectory::new(&found).is_safe(user, are_protected))
}

/// Whether the kernel refuses to open links, pipes and files of others in a shared directory.
/// Runtimes that cannot open their map go on without.
fn are_protected() -> bool {
    let kinds = ["symlinks", "hardlinks", "fifos", "regular"];
    let setting = |kind: &str| setting(&format!("fs/protected_{kind}"));
    kinds
        .iter()
        .all(|kind| setting(kind).is_some_and(|level| level >= 1))
}

/// Who may create names in the directory.
#[derive(Clone, Copy, Debug)]
struct TmpDirectory {
    owner: u32,
    mode: u32,
}

impl TmpDirectory {
    fn new(found: &Metadata) -> Self {
        Self {
            owner: found.uid(),
            mode: found.mode(),
        }
    }

    /// Whether only this user (and root) creates names in it; or it is root's, as usual, and the
    /// kernel protects plain users. What root opens should not depend on that.
    fn is_safe(self, user: u32, are_protected: impl FnOnce() -> bool) -> bool {
        const OTHERS_WRITE: u32 = 0o022;
        const STICKY: u32 = 0o1000;
        match self.mode & OTHERS_WRITE {
            0 => self.owner == user,
            _ => user != ROOT && self.owner == ROOT && self.mode & STICKY != 0 && are_protected(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_where_nobody_else_can_create_any() {
        const USER: u32 = 1000;
        let check = |user, (owner, mode), protected, expected| {
            let found = TmpDirectory { owner, mode };
            let is_safe = found.is_safe(user, || protected);
            assert_eq!(is_safe, expected, "{user} {found:?} {protected}");
        };
        // Of our own.
        for user in [ROOT, USER] {
            check(user, (user, 0o40700), false, true);
            check(user, (user, 0o41755), false, true);
            check(user, (user, 0o40770), true, false);
        }
        // Shared: root is never told to write there.
        check(ROOT, (ROOT, 0o41777), true, false);
        check(USER, (ROOT, 0o41777), true, true);
        check(USER, (ROOT, 0o41777), false, false);
        check(USER, (ROOT, 0o40777), true, false);
        // Of another user.
        check(ROOT, (USER, 0o40700), true, false);
        check(USER, (2000, 0o41777), true, false);
    }
}
