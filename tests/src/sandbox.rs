//! Surroundings that container engines make: seccomp filters that refuse system calls, and a `/tmp`
//! of their own.

use std::ffi::OsString;

use crate::Session;
use crate::program::Program;

const REFUSE: Program = Program::c(&["refuse.c"]);

/// perf_event_open
pub const PERF_EVENT_OPEN: u32 = if cfg!(target_arch = "x86_64") {
    298
} else {
    241
};

/// ptrace
pub const PTRACE: u32 = if cfg!(target_arch = "x86_64") {
    101
} else {
    117
};

/// pidfd_open
pub const PIDFD_OPEN: u32 = 434;

/// The launcher that makes these system calls of a command fail with `errno`.
pub fn refusing(session: &Session, errno: i32, calls: &[u32]) -> Vec<OsString> {
    let binary = session.install(&REFUSE.build());
    let mut launcher = vec![binary.into_os_string(), errno.to_string().into()];
    launcher.extend(calls.iter().map(|call| call.to_string().into()));
    launcher.push("--".into());
    launcher
}

/// The launcher of a command that has an empty `/tmp` with these permissions, as root in namespaces
/// of its own; our directory is in it as elsewhere. `before` is run first. Then the names of perf
/// maps that have remained are printed.
pub fn own_tmp(session: &Session, mode: &str, before: &str) -> Vec<OsString> {
    let script = format!(
        "mount --bind \"$0\" /mnt && mount -t tmpfs -o mode={mode} none /tmp && mkdir \"$0\" &&
         mount --bind /mnt \"$0\" && cd \"$0\" || exit 99
         {before}
         \"$@\"
         status=$?
         find /tmp -maxdepth 1 -type f -name 'perf*.map'
         exit $status"
    );
    let unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"];
    let mut launcher: Vec<OsString> = unshare.map(OsString::from).to_vec();
    launcher.extend(["sh", "-c", &script].map(OsString::from));
    launcher.push(session.directory().into());
    launcher
}
