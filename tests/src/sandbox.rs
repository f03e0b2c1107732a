//! Seccomp filters that refuse system calls, as container engines have them.

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

/// The launcher that makes these system calls of a command fail with `errno`.
pub fn refusing(session: &Session, errno: i32, calls: &[u32]) -> Vec<OsString> {
    let binary = session.install(&REFUSE.build());
    let mut launcher = vec![binary.into_os_string(), errno.to_string().into()];
    launcher.extend(calls.iter().map(|call| call.to_string().into()));
    launcher.push("--".into());
    launcher
}
