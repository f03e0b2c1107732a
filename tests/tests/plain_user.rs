//! As a plain user, who may sample only user code of its own processes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use prof_tests::{Need, Program, Session, copy_executable, needs, perf_script};

const NEEDS: &[Need] = &[Need::Root, Need::Tool("setpriv"), Need::PlainSampling];

/// Plain users' buffers hold some sixty copies of stacks for each CPU, and their reader has no
/// priority: at this rate it may come late by 100 ms before anything is lost.
const GENTLY: &[&str] = &["-e", "cpu-clock:u", "-F", "499"];

fn check(program: Program, arguments: &[&str], hottest: &[&str]) {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::plain_user_alone();
    let binary = session.install(&program.build());
    let mut command = vec![binary.to_str().unwrap()];
    command.extend(arguments);
    let recorded = session.record(GENTLY, &command);
    recorded.outcome.assert_says(&["verdict: good"]);
    let stacks = recorded.physical_stacks();
    stacks.assert_hottest(hottest);
    // Plain users' rings are small, so that less of each stack is copied; the rest of a stack that
    // was sampled right before it was left may be read too late.
    stacks.assert_whole(0.99);
}

#[test]
fn shallow_stacks() {
    check(
        Program::c(&["shares.c"]),
        &["500"],
        &["main", "work", "burn_sixty"],
    );
}

#[test]
fn deep_stacks() {
    check(
        Program::c(&["deep.c"]),
        &["2000", "400"],
        &["descend", "descend", "bottom"],
    );
}

#[test]
fn threads() {
    check(
        Program::c(&["threads.c"]),
        &["300"],
        &["pile", "pile", "busy"],
    );
}

#[test]
fn handlers_on_an_alternate_stack() {
    check(
        Program::c(&["signals.c"]),
        &["alternate", "300"],
        &["handler", "in_handler"],
    );
}

#[test]
fn kernel_code_is_left_out_with_a_word() {
    if !needs(NEEDS) || paranoid() != 2 {
        return;
    }
    let session = Session::plain_user();
    let binary = session.install(&Program::c(&["shares.c"]).build());
    let recorded = session.record(&[], &[binary]);
    recorded
        .outcome
        .assert_says(&["kernel code is not sampled", "verdict: good"]);
    recorded
        .physical_stacks()
        .assert_hottest(&["main", "work", "burn_sixty"]);
}

#[test]
fn perf_reads_the_file() {
    if !needs(NEEDS) || !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::plain_user();
    let binary = session.install(&Program::c(&["deep.c"]).build());
    let recorded = session.record(&[], &[binary.to_str().unwrap(), "100", "300"]);
    // perf reads files of other users only with --force, even as root.
    let copy = session.path("copy.data");
    std::fs::copy(&recorded.file, &copy).unwrap();
    let samples = perf_script(&copy);
    let deep = samples
        .iter()
        .filter(|sample| sample.frames.len() > 100)
        .count();
    assert!(deep > 50, "{deep} of {}", samples.len());
}

#[test]
fn kernel_only_sampling_is_refused_with_advice() {
    if !needs(NEEDS) || paranoid() != 2 {
        return;
    }
    let session = Session::plain_user();
    let outcome = session.run(["record", "-e", "cpu-clock:k", "--", "true"]);
    outcome.assert_refused(&["perf_event_paranoid"]);
}

#[test]
fn processes_of_others_are_refused_with_advice() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::plain_user();
    let outcome = session.run(["record", "-p", "1", "-d", "1"]);
    outcome.assert_refused(&["permission"]);
}

#[test]
fn traced_programs_that_lack_their_privileges_are_named() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::plain_user();
    let check = |mode, expected: bool| {
        let program = session.path("privileged");
        copy_executable(Path::new("/usr/bin/id"), &program);
        std::fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
        let recorded = session.record(&["--sampler", "ptrace"], &[program.as_os_str()]);
        let text = "privileged ran without the privileges of its file";
        let says = recorded.outcome.stderr.contains(text);
        assert_eq!(says, expected, "{mode:o}: {}", recorded.outcome);
        let has = recorded.outcome.stdout.contains("euid=");
        assert!(!has, "{mode:o}: {}", recorded.outcome);
        std::fs::remove_file(program).unwrap();
    };
    check(0o755, false);
    check(0o4755, true);
    check(0o2755, true);
    check(0o2745, false);
}

fn paranoid() -> i32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    text.trim().parse().unwrap()
}
