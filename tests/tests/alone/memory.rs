//! The memory of recording does not grow with its duration.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use prof_tests::{Program, Session, wait_until};

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

/// This many bytes of a recording hold at least some 10,000 samples.
const STRETCH: u64 = 2 << 20;

/// The most memory that rings, queue and unwinder may use together.
const MOST: u64 = 100 << 20;

/// Whether memory grew by less than 13 bytes per sample in the last stretch. The kernel counts
/// pages on each CPU separately, so that a peak may be some pages below the one before.
fn ends_flat(peaks: &[u64]) -> bool {
    peaks.len() > 2
        && peaks
            .last_chunk()
            .is_some_and(|[before, after]| after.saturating_sub(*before) < STRETCH / 16)
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
    let mut peaks = Vec::new();
    // The queue fills now and then on a busy machine, up to its bound. A leak per sample would
    // grow in every stretch.
    while peaks.len() < 10 && !ends_flat(&peaks) {
        let enough = STRETCH * (peaks.len() as u64 + 1);
        wait_until(&mut prof, || {
            std::fs::metadata(&file).is_ok_and(|data| data.len() >= enough)
        });
        peaks.push(peak(prof.id()));
    }
    drop(prof.stdin.take());
    assert!(prof.wait().unwrap().success());
    assert!(ends_flat(&peaks), "peaks of memory: {peaks:?}");
    assert!(peaks.iter().all(|peak| *peak < MOST), "{peaks:?}");
}
