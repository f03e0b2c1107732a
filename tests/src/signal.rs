//! Sending signals.

use std::fmt::Display;
use std::process::Command;

/// Sends a signal (`-INT`) to a process, or to a group of them (`-5`): by the shell's own `kill`,
/// because not every machine has a program for it.
///
/// # Panics
/// If it cannot be sent.
pub fn signal(name: &str, target: impl Display) {
    let mut kill = Command::new("bash");
    kill.args(["-c", "kill \"$0\" -- \"$1\"", name, &target.to_string()]);
    let status = kill.status().unwrap();
    assert!(status.success(), "kill {name} {target}: {status}");
}
