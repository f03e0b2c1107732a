//! How recordings are written: packed, and no larger than they may be.

use std::path::Path;
use std::process::{Command, Stdio};

use prof_tests::{Need, Outcome, Program, Recorded, Session, USER_CODE, needs, perf_script};

const THREADS: Program = Program::c(&["threads.c"]);

fn record<'a>(session: &'a Session, options: &[&str]) -> Recorded<'a> {
    let program = THREADS.build();
    let options = [USER_CODE, options].concat();
    session.record(&options, &[program.to_str().unwrap(), "200"])
}

/// The name in each sample, as perf reads it.
fn comms(file: &Path) -> Vec<String> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "comm", "-i"]).arg(file);
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    let lines = outcome.stdout.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Checks that perf and prof read the recording, and that it is compressed.
#[track_caller]
fn check_packed(session: &Session, options: &[&str], least_ratio: u64) {
    let recorded = record(session, &[&["-o", "packed"], options].concat());
    assert!(recorded.stacks().self_share("burn") > 0.9);
    let said = recorded.outcome.stderr.clone();
    assert_eq!(
        comms(&recorded.file).len() as u64,
        recorded.samples(),
        "{said}"
    );
    // perf says in its header how it is packed.
    let mut header = Command::new("perf");
    header
        .args(["report", "--header-only", "-i"])
        .arg(&recorded.file);
    let header = Outcome::of(header).stdout;
    let packed = header
        .lines()
        .find(|line| line.contains("compressed : Zstd"));
    let ratio = packed.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert!(ratio.is_some_and(|ratio| ratio >= least_ratio), "{header}");
}

#[test]
fn packed_recordings_are_read_by_perf_and_by_us() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    check_packed(&session, &["-z"], 2);
    let stacks = perf_script(&session.path("packed"));
    let busy = |frames: &[String]| frames.iter().any(|frame| frame == "busy");
    let found = stacks.iter().filter(|sample| busy(&sample.frames));
    assert!(found.count() * 10 > stacks.len() * 9);
    check_packed(&session, &["--compression-level=19"], 2);
    // Stack bytes, which are larger than a compressed block.
    check_packed(&session, &["-z", "--no-unwind"], 2);
    let outcome = session.run(["record", "--compression-level=23", "--", "true"]);
    outcome.assert_refused(&["22"]);
}

#[test]
fn packed_recordings_go_through_pipes() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let program = THREADS.build();
    let arguments = [
        "record",
        "-e",
        "cpu-clock:u",
        "-z",
        "-o",
        "-",
        "--",
        program.to_str().unwrap(),
        "200",
    ];
    let file = std::fs::File::create(session.path("piped")).unwrap();
    let mut prof = session.prof(arguments);
    let status = prof.stdout(file).stderr(Stdio::null()).status().unwrap();
    assert!(status.success());
    let outcome = session.run(["report", "-i", "piped"]);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("burn"), "{outcome}");
    let comms = comms(&session.path("piped"));
    assert!(comms.len() > 20, "{comms:?}");
    assert!(comms.iter().all(|comm| comm == "threads"), "{comms:?}");
}

#[test]
fn a_recording_ends_at_its_largest_size() {
    let session = Session::new();
    let program = session.install(&Program::c(&["endless.c"]).build());
    // It would never end by itself: its standard input stays open. At the highest rate, the file is
    // full before the loader is done.
    let mut command = session.prof([
        "record",
        "-e",
        "cpu-clock:u",
        "-F",
        "4999",
        "--max-size",
        "100K",
        "--",
    ]);
    command.arg(&program).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let outcome = Outcome::new(&command, child.wait_with_output().unwrap());
    drop(stdin);
    outcome.assert_says(&["size limit (--max-size)", "--max-size"]);
    let size = std::fs::metadata(session.path("prof.data")).unwrap().len();
    assert!((100 << 10..200 << 10).contains(&size), "{size}");
    let outcome = session.run(["report"]);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.contains("size limit (--max-size)"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("burn"), "{outcome}");
    let outcome = session.run(["report", "--coverage"]);
    assert!(
        outcome.stdout.contains("does not say how much work"),
        "{outcome}"
    );
    if needs(&[Need::Tool("perf")]) {
        assert!(!perf_script(&session.path("prof.data")).is_empty());
    }
}
