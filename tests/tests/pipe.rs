//! `prof record -o -`: a recording through a pipe.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use prof_tests::{
    Need, Outcome, Program, Session, Stacks, assert_shares, needs, perf_script, signal, wait_until,
};

const SHARES: Program = Program::c(&["shares.c"]);

/// Runs a script with prof's path as `$0` and the program's as `$1`.
fn shell(session: &Session, script: &str) -> Outcome {
    let words: [OsString; 4] = [
        "-c".into(),
        script.into(),
        prof_tests::prof().into(),
        session.install(&SHARES.build()).into(),
    ];
    Outcome::of(session.command(Path::new("bash"), words))
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let session = Session::new();
    session.record(
        &["-e", "cpu-clock"],
        &[SHARES.build().to_str().unwrap(), "300"],
    );
    for arguments in [
        "record -o - -- true",
        "report",
        "report --folded -",
        "report --csv -",
        "report --json -",
        "script",
        "annotate main",
        "diff prof.data prof.data",
        "list",
        "doctor",
    ] {
        let outcome = shell(&session, &format!("\"$0\" {arguments} >&-"));
        outcome
            .assert_code(1)
            .assert_says(&["the standard output is closed"]);
    }
    // There, nothing can be said of it.
    shell(&session, "\"$0\" stat -e task-clock -- true 2>&-").assert_code(1);
    // As Rust programs see it unless they check.
    shell(&session, "\"$0\" report <>/dev/null >&0").assert_code(0);
    shell(&session, "\"$0\" report --folded out.txt >&-").assert_code(0);
    assert!(session.path("out.txt").exists());
}

#[test]
fn the_pipe_has_a_complete_recording() {
    let session = Session::new();
    let script = "\"$0\" record -e cpu-clock -o - -- sh -c 'echo spoken; \"$0\" 500' \"$1\" | cat > piped.data";
    let outcome = shell(&session, script);
    outcome
        .assert_code(0)
        .assert_says(&["verdict: good", "spoken"]);
    let report = session.run(["report", "-i", "piped.data", "--no-inline", "--folded", "-"]);
    report.assert_code(0).assert_says(&["verdict: good"]);
    let stacks = Stacks::from_folded(&report.stdout);
    stacks.assert_hottest(&["main", "work", "burn_sixty"]);
    if needs(&[Need::Tool("perf")]) {
        let samples = perf_script(&session.path("piped.data"));
        let with_main = |frames: &[String]| frames.iter().any(|frame| frame == "main");
        let whole = samples
            .iter()
            .filter(|sample| with_main(&sample.frames))
            .count();
        assert!(whole > 300, "{whole} of {}", samples.len());
        let shown = shell(&session, "perf report -i - --stdio < piped.data");
        assert!(shown.stdout.contains("burn_sixty"), "{shown}");
        assert!(!shown.stderr.contains("failed"), "{shown}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_recording_with_a_word() {
    let session = Session::new();
    let script = "\"$0\" record -o - --no-unwind -- \"$1\" 100000 | head -c 300000 > head.data; \
                  exit ${PIPESTATUS[0]}";
    shell(&session, script)
        .assert_code(1)
        .assert_says(&["broken pipe"]);
    let report = session.run(["report", "-i", "head.data", "--folded", "-"]);
    report.assert_code(0).assert_says(&["ends early"]);
    assert!(Stacks::from_folded(&report.stdout).total() > 0, "{report}");
}

/// As in `prof report --csv - | head -3`.
#[test]
fn reports_to_a_closed_pipe_end_silently() {
    let session = Session::new();
    let functions = (0..1000).map(|number| format!("main;function{number} 1\n"));
    session.write("x.folded", functions.collect::<String>().as_bytes());
    for what in [
        &["report"][..],
        &["report", "--tree"],
        &["report", "--csv", "-"],
        &["report", "--folded", "-"],
        &["report", "--json", "-"],
        &["report", "--speedscope", "-"],
        &["report", "--firefox", "-"],
        &["report", "--pprof", "-"],
        &["report", "--flamegraph", "-"],
        &["report", "--html", "-"],
        &["script"],
    ] {
        let mut prof = session.prof([what, &["-i", "x.folded"]].concat());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        prof.stdout(writer);
        let outcome = Outcome::of(prof);
        outcome.assert_code(0);
        assert!(!outcome.stderr.contains("error"), "{outcome}");
    }
}

/// How much is left when the target ends depends on the machine; but with an unread pipe, all of it
/// is left.
#[test]
fn unwinding_at_the_end_is_shown_and_can_be_cut_short() {
    let session = Session::new();
    let (mut prof, said) = with_much_left(&session);
    let pid = prof.id();
    interrupt(pid);
    wait_until(&mut prof, || !is_pending(pid, 2));
    let output = prof.stdout.take().unwrap();
    std::io::copy(
        &mut { output },
        &mut File::create(session.path("piped.data")).unwrap(),
    )
    .unwrap();
    assert!(prof.wait().unwrap().success());
    let rest: Vec<String> = said.collect();
    let reported = |words: &str| rest.iter().any(|line| line.contains(words));
    assert!(reported("because prof had to end at once"), "{rest:#?}");
    assert!(reported("no sample lost"), "{rest:#?}");

    let report = session.run(["report", "-i", "piped.data", "--no-inline", "--folded", "-"]);
    report
        .assert_code(0)
        .assert_says(&["because prof had to end at once"]);
    let stacks = Stacks::from_folded(&report.stdout);
    let cut = stacks.share(|frames| frames.iter().any(|frame| frame.contains("had to end")));
    assert!(cut > 0.1, "{stacks}");
    // Their stacks are known anyway.
    let expected = [("burn_sixty", 0.6), ("burn_thirty", 0.3), ("burn_ten", 0.1)];
    let leaves = stacks.with_leaves(&expected.map(|(name, _)| name));
    assert_shares(&leaves, 500, &expected);
}

/// A reader that holds the pipe open and does not read must not block prof for ever.
#[test]
fn a_reader_that_does_not_read_does_not_block() {
    let session = Session::new();
    let (mut prof, _said) = with_much_left(&session);
    let status = loop {
        if let Some(status) = prof.try_wait().unwrap() {
            break status;
        }
        interrupt(prof.id());
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(status.signal(), Some(2), "{status}");
}

/// A recording whose target has ended, with an unread pipe, and the rest of its messages.
fn with_much_left(session: &Session) -> (Child, impl Iterator<Item = String>) {
    let binary = session.install(&SHARES.build());
    let words = ["record", "-e", "cpu-clock:u", "-F", "1999", "-o", "-", "--"];
    let mut command = session.prof(words);
    command.arg(&binary).arg("1000");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut prof = command.spawn().unwrap();
    let said = BufReader::new(prof.stderr.take().unwrap()).lines();
    let mut said = said.map(Result::unwrap);
    let reported = said.find(|line| line.contains("unwinding and writing"));
    assert!(reported.is_some());
    (prof, said)
}

fn interrupt(pid: u32) {
    signal("-INT", pid);
}

/// Whether a signal is pending in a process.
fn is_pending(pid: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = u64::from_str_radix(pending.unwrap().trim(), 16).unwrap();
    pending & 1 << (signal - 1) != 0
}

#[test]
fn options_that_need_a_file_are_refused() {
    let session = Session::new();
    let script =
        "\"$0\" record -o - --flamegraph x.svg -- echo started | cat; exit ${PIPESTATUS[0]}";
    shell(&session, script).assert_refused(&["need a file, not -o -"]);
}
