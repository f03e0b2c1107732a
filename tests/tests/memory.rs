//! Recording takes the same memory however long it takes.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use prof_tests::{Program, Session};

/// The most memory that a process has ever used, in bytes.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

fn until_as_long_as(file: &Path, bytes: u64) {
    while !std::fs::metadata(file).is_ok_and(|data| data.len() >= bytes) {
        std::thread::yield_now();
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_samples() {
    let session = Session::alone();
    let binary = Program::c(&["waits.c"]).build();
    let mut prof = session
        .prof(["record", "-q", "-F", "9999", "--", binary.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut output = BufReader::new(prof.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    let file = session.path("prof.data");
    until_as_long_as(&file, 1 << 20);
    let early = peak(prof.id());
    until_as_long_as(&file, 6 << 20);
    let late = peak(prof.id());
    drop(prof.stdin.take());
    assert!(prof.wait().unwrap().success());
    let growth = late.saturating_sub(early);
    assert!(
        growth < 1 << 20,
        "{growth} bytes more for 5 MiB of samples (from {early})"
    );
}
