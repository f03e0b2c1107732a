//! `prof record -o -`: a recording that goes through a pipe.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;

use prof_tests::{Need, Outcome, Program, Session, Stacks, needs, perf_script};

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
fn what_comes_out_of_the_pipe_is_a_recording() {
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

#[test]
fn what_needs_a_file_is_refused() {
    let session = Session::new();
    let script =
        "\"$0\" record -o - --flamegraph x.svg -- echo started | cat; exit ${PIPESTATUS[0]}";
    shell(&session, script).assert_refused(&["keeps no file"]);
}
