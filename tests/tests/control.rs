//! When sampling is enabled: delays, `--control`, commands that run several times.

use std::collections::BTreeSet;
use std::process::Command;

use prof_tests::{Need, Outcome, Program, Recorded, Session, needs};

const CONTROLLED_REGION: Program = Program::c(&["controlled_region.c"]);
const THREADS: Program = Program::c(&["threads.c"]);

/// Records the program that enables and disables sampling itself.
fn controlled_region<'a>(session: &'a Session, options: &[&str]) -> Recorded<'a> {
    for name in ["commands", "answers"] {
        let made = Command::new("mkfifo").arg(session.path(name)).status();
        assert!(made.unwrap().success());
        // Plain users may use them as well.
        let open = Command::new("chmod")
            .arg("666")
            .arg(session.path(name))
            .status();
        assert!(open.unwrap().success());
    }
    let fixed = [
        "-F",
        "1999",
        "--delay",
        "-1",
        "--control",
        "fifo:commands,answers",
    ];
    let program = session.install(&CONTROLLED_REGION.build());
    let command = [program.to_str().unwrap(), "commands", "answers", "150"];
    session.record(&[&fixed, options].concat(), &command)
}

/// Nothing but the enabled part was sampled, and it is whole.
#[track_caller]
fn check_region(recorded: &Recorded<'_>) {
    let stacks = recorded.physical_stacks();
    assert!(stacks.self_share("inside") > 0.98, "{stacks}");
    assert_eq!(stacks.self_share("outside"), 0.0, "{stacks}");
    let names: BTreeSet<_> = stacks.processes().into_iter().collect();
    // Its new name, which it got while it was not sampled, is known.
    assert_eq!(names, BTreeSet::from(["controlled_regi", "renamed"]));
}

#[test]
fn a_program_controls_its_own_sampling() {
    let session = Session::new();
    let recorded = controlled_region(&session, &["-e", "cpu-clock:u"]);
    check_region(&recorded);
    // Its work while it was not sampled does not count as missing.
    let outcome = recorded.report(&["--coverage"]);
    // "samples cover 99.94 % of the work of ..."
    let share: f64 = outcome.stdout.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((95.0..=105.0).contains(&share), "{outcome}");
}

#[test]
fn the_ptrace_sampler_is_controlled_as_well() {
    let session = Session::new();
    check_region(&controlled_region(&session, &["--sampler", "ptrace"]));
}

#[test]
fn plain_users_programs_control_sampling() {
    if needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        let session = Session::plain_user();
        check_region(&controlled_region(&session, &["-e", "cpu-clock:u"]));
    }
}

#[test]
fn perf_reads_controlled_recordings() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let recorded = controlled_region(&session, &["-e", "cpu-clock:u"]);
    let samples = prof_tests::perf_script(&recorded.file);
    assert_eq!(samples.len() as u64, recorded.samples());
    let inside = |frames: &[String]| frames.iter().any(|frame| frame == "inside");
    let inside = samples.iter().filter(|sample| inside(&sample.frames));
    assert!(inside.count() * 100 >= samples.len() * 98);
}

#[test]
fn a_shell_holds_descriptors() {
    let session = Session::new();
    let program = THREADS.build();
    let script = format!(
        "mkfifo c a; exec 8<>c 9<>a; echo pong >&8; echo ping >&8; '{}' record -q --control fd:8,9 -D -1 -- '{}' 30 && \
         read -r line <&9 && echo \"$line\" && read -r line <&9 && echo \"$line\"",
        prof_tests::prof().display(),
        program.display()
    );
    let outcome = Outcome::of(session.command(std::path::Path::new("sh"), ["-c", &script]));
    outcome.assert_code(0);
    assert_eq!(outcome.stdout, "unknown\nack\n", "{outcome}");
    // It was never enabled.
    let outcome = session.run(["report"]);
    assert!(outcome.stderr.contains("no samples"), "{outcome}");
}

#[test]
fn delays_pass_before_sampling_begins() {
    let session = Session::new();
    let program = THREADS.build();
    let record = |delay: &str| {
        let options = ["-e", "cpu-clock:u", "-D", delay];
        session
            .record(&options, &[program.to_str().unwrap(), "100"])
            .samples()
    };
    assert_eq!(record("10000000"), 0);
    assert!(record("1") > 20);
    let outcome = session.run(["record", "-D", "10000000", "--", "true"]);
    outcome.assert_says(&["the recording ended before sampling was enabled"]);
    let outcome = session.run(["record", "-D", "-2", "--", "true"]);
    outcome.assert_refused(&["-1"]);
    let outcome = session.run(["record", "-D", "-1", "--", "true"]);
    outcome.assert_refused(&["--delay -1", "--control"]);
}

#[test]
fn a_command_is_run_several_times() {
    let session = Session::new();
    let script = "echo x >> runs; exec \"$0\" 50";
    let program = THREADS.build();
    let recorded = session.record(
        &["-e", "cpu-clock:u", "-F", "1999", "--repeat", "3"],
        &["sh", "-c", script, program.to_str().unwrap()],
    );
    let runs = std::fs::read_to_string(session.path("runs")).unwrap();
    assert_eq!(runs, "x\nx\nx\n");
    let outcome = recorded.report(&["--by", "process", "--folded", "-"]);
    let pids: BTreeSet<&str> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.split(';').next())
        .collect();
    assert_eq!(pids.len(), 3, "{outcome}");
    // The last failure decides, and all runs take place.
    let script = "echo x >> tries; test $(wc -l < tries) != 2 || exit 5";
    let outcome = session.run(["record", "-r", "3", "--", "sh", "-c", script]);
    outcome.assert_code(5);
    let tries = std::fs::read_to_string(session.path("tries")).unwrap();
    assert_eq!(tries, "x\nx\nx\n");
    let outcome = session.run(["record", "-r", "2", "--sampler", "ptrace", "--", "true"]);
    outcome.assert_refused(&["--repeat"]);
}

#[test]
fn a_fifo_that_is_not_there_is_named() {
    let session = Session::new();
    let outcome = session.run(["record", "--control", "fifo:nowhere", "--", "true"]);
    outcome.assert_refused(&["--control", "nowhere: no such file", "mkfifo"]);
    session.write("file", b"");
    let outcome = session.run(["record", "--control", "fifo:file", "--", "true"]);
    outcome.assert_refused(&["--control", "file: it is not a FIFO", "mkfifo"]);
    let script = "exec \"$0\" record --control fd:8 -- true 8<>file";
    let prof = prof_tests::prof();
    let arguments = ["-c".as_ref(), script.as_ref(), prof.as_os_str()];
    let command = session.command(std::path::Path::new("sh"), arguments);
    Outcome::of(command).assert_refused(&["--control", "neither a pipe nor a socket"]);
    let outcome = session.run(["record", "--control", "fd:999", "--", "true"]);
    outcome.assert_refused(&["--control"]);
}
