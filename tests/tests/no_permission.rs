//! If perf_event_open is refused, prof stops threads instead, and all else works as usual.

use std::ffi::OsString;
use std::process::{Child, Stdio};

use prof_tests::{
    Compiler, Need, Outcome, PERF_EVENT_OPEN, PIDFD_OPEN, PTRACE, Program, Session, Stacks,
    assert_shares, needs, perf_script, refusing, signal, wait_until,
};

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

const SHARES: Program = Program::c(&["shares.c"]);

/// Records a command under a filter that refuses perf_event_open; returns prof's messages, and the
/// stacks.
fn record(
    session: &Session,
    errno: i32,
    program: &Program,
    arguments: &[&str],
) -> (Outcome, Stacks) {
    let launcher = refusing(session, errno, &[PERF_EVENT_OPEN]);
    let binary = session.install(&program.build());
    let mut words: Vec<OsString> = vec!["record".into(), "--".into(), binary.into()];
    words.extend(arguments.iter().map(OsString::from));
    let outcome = Outcome::of(session.prof_under(&launcher, words));
    let stacks = stacks(session);
    (outcome, stacks)
}

fn stacks(session: &Session) -> Stacks {
    let report = session.run(["report", "--no-inline", "--folded", "-"]);
    report.assert_code(0);
    Stacks::from_folded(&report.stdout)
}

fn samples(outcome: &Outcome) -> u64 {
    let before = outcome
        .stderr
        .split_once(" samples,")
        .map(|(before, _)| before);
    let number = before.and_then(|before| before.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("how many samples? {outcome}"))
}

const EXPECTED: [(&str, f64); 3] = [("burn_sixty", 0.6), ("burn_thirty", 0.3), ("burn_ten", 0.1)];

/// Records the shares program for this many milliseconds.
#[track_caller]
fn check_fallback(session: &Session, errno: i32, milliseconds: &str) -> (Outcome, Stacks) {
    let (outcome, stacks) = record(session, errno, &SHARES, &[milliseconds]);
    outcome
        .assert_code(0)
        .assert_says(&["ptrace", "a seccomp filter forbids it", "verdict: good"]);
    stacks.assert_whole(0.99);
    (outcome, stacks)
}

#[track_caller]
fn check_shares(session: &Session) {
    let (outcome, stacks) = check_fallback(session, EPERM, "1000");
    let leaves = stacks.with_leaves(&EXPECTED.map(|(name, _)| name));
    assert_shares(&leaves, samples(&outcome), &EXPECTED);
}

#[test]
fn whichever_errno_a_seccomp_filter_returns() {
    let session = Session::new();
    check_shares(&session);
    for errno in [EACCES, ENOSYS] {
        check_fallback(&session, errno, "200");
    }
}

#[test]
fn as_a_plain_user() {
    if !needs(&[Need::Root, Need::Tool("setpriv")]) {
        return;
    }
    check_shares(&Session::plain_user());
}

/// One thread sleeps 20 times, another one is busy meanwhile.
#[test]
fn weights_are_cpu_time_and_waits_are_not_interrupted() {
    const SLEEPS: u64 = 20;
    let session = Session::alone();
    let sleeps = Program::c(&["short_sleeps.c"]);
    let (outcome, stacks) = record(&session, EPERM, &sleeps, &[&SLEEPS.to_string()]);
    outcome.assert_code(0);
    let mut words = outcome.stdout.split_whitespace();
    let [interrupted, used] = [(); 2].map(|()| words.next().unwrap().parse::<u64>().unwrap());
    let share = stacks.total() as f64 / used as f64;
    assert!(
        (0.9..1.1).contains(&share),
        "{share} of {used} ns: {outcome}"
    );
    // Stopping a thread right before it blocks interrupts that wait. If prof stopped blocked
    // threads, all waits would be interrupted: each is 50 samples long.
    assert!(interrupted < SLEEPS / 2, "{outcome}");
}

/// A thread that is asked to stop from another CPU may reach its next system call first.
#[test]
fn code_between_system_calls_keeps_its_share() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let program = Program::c(&["clock_calls.c"]);
    let events = session.record(&["-e", "cpu-clock"], &[program.build()]);
    let expected = events.physical_stacks().self_share("between_calls");
    for _ in 0..4 {
        let (outcome, stacks) = record(&session, EPERM, &program, &[]);
        let share = stacks.self_share("between_calls");
        assert!(
            share > expected - 0.15,
            "{share} instead of {expected}: {outcome}{stacks}"
        );
    }
}

#[test]
fn threads() {
    let session = Session::new();
    let (outcome, stacks) = record(&session, EPERM, &Program::c(&["threads.c"]), &["300"]);
    outcome.assert_code(0).assert_says(&["verdict: good"]);
    stacks.assert_hottest(&["pile", "pile", "busy"]);
    stacks.assert_whole(0.99);
}

#[test]
fn children_and_their_children() {
    let session = Session::new();
    let (outcome, stacks) = record(&session, EPERM, &Program::c(&["forks.c"]), &["300"]);
    outcome.assert_code(0);
    for function in ["in_parent", "in_child", "in_grandchild"] {
        let share = stacks.share(|frames| frames.iter().any(|frame| frame == function));
        assert!(
            (0.25..0.42).contains(&share),
            "{function}: {share}\n{stacks}"
        );
    }
}

#[test]
fn programs_that_start_programs() {
    let session = Session::new();
    let (outcome, stacks) = record(&session, EPERM, &Program::c(&["execs.c"]), &[]);
    outcome.assert_code(0).assert_says(&["verdict: good"]);
    stacks.assert_whole(0.99);
}

#[test]
fn handlers_on_another_stack() {
    let session = Session::new();
    let arguments = ["alternate", "300"];
    let (outcome, stacks) = record(&session, EPERM, &Program::c(&["signals.c"]), &arguments);
    outcome.assert_code(0);
    stacks.assert_hottest(&["handler", "in_handler"]);
}

/// Both samplers say that they do not unwind it.
#[test]
fn code_of_32_bits() {
    let flags = &["-m32", "-nostdlib", "-static", "-fno-pic", "-fno-pie"];
    let binary = Program::new(&["compat.c"], Compiler::Gcc, flags).build();
    let session = Session::new();
    for sampler in ["perf", "ptrace"] {
        let command = ["--sampler", sampler, "--strict", "--"];
        let command = ["record", "-e", "cpu-clock:u"].iter().chain(&command);
        let outcome = session.run(command.copied().chain([binary.to_str().unwrap()]));
        let why = "32-bit code: prof unwinds 64-bit programs only (most in ";
        outcome
            .assert_code(3)
            .assert_says(&["verdict: BAD: 0 %", why]);
        assert!(!outcome.stderr.contains("; "), "no remedy: {outcome}");
        stacks(&session).assert_hottest(&["compat_burn"]);
    }
}

#[test]
fn how_the_command_ends_comes_through() {
    let session = Session::new();
    let reports = Program::c(&["reports.c"]);
    let (outcome, _) = record(&session, EPERM, &reports, &["3"]);
    outcome.assert_code(3);
    for (signal, code) in [("15", 143), ("9", 137), ("11", 139)] {
        let (outcome, _) = record(&session, EPERM, &reports, &["kill", signal]);
        outcome.assert_code(code);
    }
}

/// Ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy(session: &Session) -> Running {
    let binary = session.install(&SHARES.build());
    let mut command = session.command(&binary, ["1000000"]);
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn running_processes_are_sampled_and_let_go() {
    let session = Session::new();
    let mut target = busy(&session);
    let pid = target.0.id().to_string();
    let launcher = refusing(&session, ENOSYS, &[PERF_EVENT_OPEN]);
    let outcome = Outcome::of(session.prof_under(&launcher, ["record", "-d", "1", "-p", &pid]));
    outcome
        .assert_code(0)
        .assert_says(&["ptrace", "verdict: good"]);
    assert!(target.0.try_wait().unwrap().is_none(), "it lives on");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("TracerPid:\t0"), "{status}");
    stacks(&session).assert_whole(0.99);
}

/// The kernel's line on a process, from its state on.
fn status(pid: u32) -> Vec<String> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = line.rsplit(") ").next().unwrap_or_default();
    behind_name.split(' ').map(str::to_owned).collect()
}

/// CPU time in ticks, a hundredth of a second each.
fn ticks(pid: u32) -> u64 {
    let status = status(pid);
    let field = |at: usize| status.get(at).and_then(|field| field.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}

/// Stops the sampler until the target, which it must not hold just then, has run on for so long.
fn look_away(sampler: u32, target: &mut Child, long: u64) {
    let pid = target.id();
    loop {
        let begin = ticks(pid);
        signal("-STOP", sampler);
        wait_until(target, || {
            ticks(pid) > begin + long || status(pid).first().is_some_and(|state| state == "t")
        });
        signal("-CONT", sampler);
        if ticks(pid) > begin + long {
            return;
        }
        let begin = ticks(pid);
        wait_until(target, || ticks(pid) > begin + 2);
    }
}

/// The time without samples is unknown: it is not added to a single sample.
#[test]
fn unsampled_time_is_missing() {
    let session = Session::alone();
    let deep = Program::c(&["deep.c"]).build();
    let mut target = session.command(&deep, ["3", "3000"]).spawn().unwrap();
    let pid = target.id();
    let command = ["record", "--sampler", "ptrace", "-p", &pid.to_string()];
    let mut command = session.prof(command);
    let prof = command.stderr(Stdio::piped()).spawn().unwrap();
    let is_traced = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
    };
    wait_until(&mut target, is_traced);
    let begin = ticks(pid);
    wait_until(&mut target, || ticks(pid) > begin + 20);
    look_away(prof.id(), &mut target, 120);
    assert!(target.wait().unwrap().success());
    let outcome = Outcome::new(&command, prof.wait_with_output().unwrap());
    outcome
        .assert_code(0)
        .assert_says(&["samples came late or not at all"]);
    let said = &outcome.stderr;
    assert!(
        !said.contains("verdict: good") && !said.contains("in the kernel"),
        "{outcome}"
    );
    let script = session.run(["script"]).stdout;
    let periods = script.lines().filter_map(|line| {
        let (before, _) = line.split_once(" cpu-clock:u:")?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    });
    let most = periods.max().unwrap();
    // At most 50 periods, corrected like all weights: far less than the missed time.
    assert!((1_000_000..100_000_000).contains(&most), "{most}");
}

#[test]
fn without_perf_events_and_ptrace_there_is_advice() {
    let session = Session::new();
    let launcher = refusing(&session, EPERM, &[PERF_EVENT_OPEN, PTRACE]);
    let outcome = Outcome::of(session.prof_under(&launcher, ["record", "--", "echo", "started"]));
    outcome.assert_refused(&["cannot trace", "seccomp=unconfined"]);
    assert_eq!(outcome.stdout, "", "the command must not have run");
    assert!(!session.path("prof.data").exists());
}

#[test]
fn counting_is_refused_for_the_same_reason_as_sampling() {
    let session = Session::new();
    let launcher = refusing(&session, EPERM, &[PERF_EVENT_OPEN]);
    let words = ["stat", "-e", "instructions:u", "--", "true"];
    let outcome = Outcome::of(session.prof_under(&launcher, words));
    outcome.assert_refused(&["a seccomp filter", "SystemCallFilter="]);
}

#[test]
fn the_ptrace_sampler_can_be_requested_and_refused() {
    let session = Session::new();
    let binary = SHARES.build();
    let recorded = session.record(&["--sampler", "ptrace"], &[binary.to_str().unwrap(), "500"]);
    recorded.outcome.assert_says(&["by stopping threads"]);
    recorded.stacks().assert_whole(0.99);
    let launcher = refusing(&session, EPERM, &[PERF_EVENT_OPEN]);
    let words = ["record", "--sampler", "perf", "--", "true"];
    Outcome::of(session.prof_under(&launcher, words)).assert_refused(&["a seccomp filter"]);
    let words = [
        "record",
        "--sampler",
        "ptrace",
        "-e",
        "page-faults",
        "--",
        "true",
    ];
    session.run(words).assert_refused(&["leave out -e"]);
}

#[test]
fn perf_reads_the_file() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let binary = SHARES.build();
    let recorded = session.record(&["--sampler", "ptrace"], &[binary.to_str().unwrap(), "500"]);
    let samples = perf_script(&recorded.file);
    assert_eq!(samples.len() as u64, recorded.samples());
    let with_main = |frames: &[String]| frames.iter().any(|frame| frame == "main");
    let whole = samples
        .iter()
        .filter(|sample| with_main(&sample.frames))
        .count();
    assert!(
        whole * 100 > samples.len() * 95,
        "{whole} of {}",
        samples.len()
    );
}

#[test]
fn another_tracer_is_named() {
    let session = Session::new();
    let target = busy(&session);
    let pid = target.0.id().to_string();
    // prof itself is the debugger here: the second one finds the first.
    let mut first = session.prof([
        "record",
        "--sampler",
        "ptrace",
        "-o",
        "first.data",
        "-p",
        &pid,
    ]);
    let mut first = Running(first.stderr(Stdio::null()).spawn().unwrap());
    let traced = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        !status.contains("TracerPid:\t0")
    };
    wait_until(&mut first.0, traced);
    let second = [
        "record",
        "--sampler",
        "ptrace",
        "-o",
        "second.data",
        "-p",
        &pid,
    ];
    session.run(second).assert_refused(&["traces it already"]);
    drop(first);
}

/// /proc reports the CPU time of each thread, so that the coverage is known.
#[test]
fn coverage_is_complete_with_the_ptrace_sampler() {
    let session = Session::alone();
    let threads = Program::c(&["short_threads.c"]);
    let (outcome, _) = record(&session, EPERM, &threads, &["50", "20000"]);
    outcome.assert_code(0);
    let text = session.run(["report", "--json", "-"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let coverage = json["quality"]["coverage"].as_array().unwrap();
    let sum = |field: &str| -> u64 {
        let numbers = coverage.iter().map(|one| one[field].as_u64().unwrap());
        numbers.sum()
    };
    assert_eq!(sum("threads"), 51, "{coverage:?}");
    let share = sum("sampled") as f64 / sum("used") as f64;
    assert!((0.9..1.1).contains(&share), "{share} of {coverage:?}");
}

/// Linux before 5.3 has no pidfds, and filters may refuse what they do not know.
#[test]
fn commands_run_where_pidfds_are_refused() {
    let session = Session::new();
    let launcher = refusing(&session, ENOSYS, &[PIDFD_OPEN]);
    for options in [
        &["record"][..],
        &["record", "--sampler", "ptrace"],
        &["stat"],
    ] {
        let words = [options, &["--", "sh", "-c", "exit 3"]].concat();
        Outcome::of(session.prof_under(&launcher, words)).assert_code(3);
    }
    // It is signalled, too.
    let words = ["record", "-d", "100ms", "--", "sleep", "1000000"];
    let outcome = Outcome::of(session.prof_under(&launcher, words));
    outcome.assert_says(&["verdict"]);
    let missing = ["record", "--", "no-such-command-anywhere"];
    Outcome::of(session.prof_under(&launcher, missing)).assert_code(127);
}
