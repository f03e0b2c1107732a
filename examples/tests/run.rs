//! The examples work as described.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::path::Path;
use std::process::Command;

use prof_needs::{met, tools};

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_command_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("shell.svg");
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
    output(
        Command::new(env!("CARGO_BIN_EXE_flamegraph"))
            .arg(&picture)
            .args(["sh", "-c", busy]),
    );
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(
        svg.contains("<title>sh (") && svg.contains("_start"),
        "{svg:.2000}"
    );
}

#[test]
fn a_program_records_itself() {
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("own.data");
    let printed = output(Command::new(env!("CARGO_BIN_EXE_record-itself")).arg(recording));
    let hottest = printed.lines().nth(1).unwrap();
    assert!(hottest.ends_with(" record_itself::work"), "{printed}");
}

#[test]
fn a_recording_of_perf_is_unwound() {
    if !tools(&["perf"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("perf.data");
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
    let record = ["record", "-e", "cpu-clock:u", "--call-graph", "dwarf", "-o"];
    let recorded = Command::new("perf")
        .args(record)
        .arg(&recording)
        .args(["sh", "-c", busy])
        .output()
        .unwrap();
    let refused = String::from_utf8_lossy(&recorded.stderr);
    if !met(
        recorded.status.success(),
        &format!("the right to sample: {refused}"),
    ) {
        return;
    }
    let printed = unwound(&recording);
    let stacks = |line: &str| line.split(' ').next()?.parse::<u32>().ok();
    let all: u32 = printed.lines().filter_map(stacks).sum();
    let whole = printed.lines().find(|line| line.ends_with(": whole"));
    let whole = whole.and_then(stacks).unwrap_or(0);
    assert!(
        all > 50 && f64::from(whole) > 0.9 * f64::from(all),
        "{printed}"
    );
}

fn unwound(recording: &Path) -> String {
    output(Command::new(env!("CARGO_BIN_EXE_unwind-foreign")).arg(recording))
}
