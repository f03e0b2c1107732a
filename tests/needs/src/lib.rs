//! The needs of tests: if the machine lacks one, the test says so and passes, or fails under
//! `CI=true`.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether these programs can be run. A test begins with `if !tools(&["perf"]) { return; }`.
///
/// # Panics
/// Under `CI=true`, if one cannot.
#[track_caller]
pub fn tools(names: &[&str]) -> bool {
    let missing: Vec<&str> = names.iter().copied().filter(|name| !runs(name)).collect();
    met(missing.is_empty(), &missing.join(", "))
}

/// The Python with the packages of tests/python.txt, if `.ci/run` has made one; else the system's.
pub fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = root.join("target/python/bin/python3");
    if made.exists() {
        made
    } else {
        "python3".into()
    }
}

/// Says that the test needs `what`, unless it is there.
///
/// # Panics
/// Under `CI=true`, if it is not.
#[track_caller]
pub fn met(is_there: bool, what: &str) -> bool {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(is_there || !in_ci, "this machine lacks {what}");
    if !is_there {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        // Not eprintln!, which libtest keeps to itself when a test passes.
        let message = format!("\n!!! {test} NOT RUN: this machine lacks {what}\n");
        let _ = std::io::stderr().write_all(message.as_bytes());
    }
    is_there
}

/// Debian's perf is a script that fails without a perf for the kernel; other programs do not know
/// the option, and fail as well.
fn runs(name: &str) -> bool {
    let mut command = Command::new(name);
    let quiet = command.arg("--version").stdin(Stdio::null());
    let status = quiet.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| name != "perf" || status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_needs_are_noticed() {
        assert!(runs("sh") && !runs("no such program"));
        assert!(met(true, "nothing"));
    }
}
