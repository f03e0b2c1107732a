//! Recordings by the real perf, for the tests.
#![allow(dead_code, unreachable_pub, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `perf record ARGS -o FILE -- PROGRAM` in a directory of its own. `None`, after saying so,
/// where there is no perf; under CI that is a failure.
pub fn perf_record(directory: &Path, args: &[&str], program: &[&str]) -> Option<PathBuf> {
    let perf = perf()?;
    let file = directory.join("perf.data");
    let mut command = Command::new(perf);
    // perf 6.1 aborts if several of them add the same files to its cache.
    command.args(["record", "--no-buildid-cache"]).args(args);
    let piped = args.contains(&"-");
    if piped {
        let out = std::fs::File::create(&file).expect("a file to pipe into");
        command.stdout(out);
    } else {
        command.arg("-o").arg(&file).stdout(Stdio::null());
    }
    let output = command
        .arg("--")
        .args(program)
        .stderr(Stdio::piped())
        .output();
    let output = output.expect("perf starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("perf_event_paranoid") && std::env::var_os("CI").is_none() {
        eprintln!("NOT TESTED: perf record {args:?} is not allowed to this user");
        return None;
    }
    assert!(output.status.success(), "perf record {args:?}: {stderr}");
    Some(file)
}

/// Runs perf and returns its output. `None` as above.
pub fn run_perf(args: &[&str]) -> Option<Output> {
    let output = Command::new(perf()?)
        .args(args)
        .stdin(Stdio::null())
        .output();
    Some(output.expect("perf starts"))
}

fn perf() -> Option<&'static str> {
    let found = Command::new("perf").arg("version").output().is_ok();
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "perf is missing: apt-get install linux-perf"
        );
        eprintln!("NOT TESTED: perf is missing (apt-get install linux-perf)");
    }
    found.then_some("perf")
}

/// A shell command that uses CPU time, forks and execs.
pub const BUSY: &[&str] = &[
    "sh",
    "-c",
    "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; (ls / >/dev/null; true); seq 200000 | sort -r | tail -1 >/dev/null",
];
