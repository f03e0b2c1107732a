//! Processes whose main thread has ended, while another one still runs.

use std::process::{Child, Stdio};

use prof_tests::{Need, Program, Session, Stacks, needs, spawn_ready, wait_until};

const PLAIN: &[Need] = &[Need::Root, Need::Tool("setpriv"), Need::PlainSampling];

/// A process that is ready.
fn start(session: &Session) -> Child {
    let program = session.install(&Program::c(&["main_ends.c"]).build());
    spawn_ready(session.command(&program, ["500"]))
}

/// Records the rest of such a process, which it begins when sampling has begun.
#[track_caller]
fn check(session: &Session, options: &[&str]) {
    let mut target = start(session);
    let pid = target.id().to_string();
    let options: Vec<_> = (options.iter())
        .map(|&word| if word == "PID" { &pid } else { word })
        .collect();
    let arguments = [&["record"], &options[..]].concat();
    let mut prof = session.prof(arguments);
    let mut prof = prof.stderr(Stdio::piped()).spawn().unwrap();
    let file = session.path("prof.data");
    wait_until(&mut prof, || {
        std::fs::metadata(&file).is_ok_and(|data| data.len() > 0)
    });
    drop(target.stdin.take());
    assert!(target.wait().unwrap().success());
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options:?}: {said}");
    let report = session.run(["report", "--no-inline", "--folded", "-"]);
    report.assert_code(0);
    let stacks = Stacks::from_folded(&report.stdout);
    stacks.assert_hottest(&["descend", "descend", "bottom"]);
    stacks.assert_whole(0.9);
    assert_eq!(stacks.processes(), ["main_ends"]);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn by_its_id_or_its_name() {
    let session = Session::new();
    check(&session, &["-e", "cpu-clock:u", "-p", "PID"]);
    check(&session, &["-e", "cpu-clock:u", "--name", "^main_ends$"]);
}

#[test]
fn stopped_by_ptrace() {
    check(&Session::new(), &["--sampler", "ptrace", "-p", "PID"]);
}

#[test]
fn as_a_plain_user() {
    if !needs(PLAIN) {
        return;
    }
    let session = Session::plain_user();
    check(&session, &["-e", "cpu-clock:u", "-p", "PID"]);
    check(&session, &["--sampler", "ptrace", "-p", "PID"]);
}
