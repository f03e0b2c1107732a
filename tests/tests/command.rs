//! The recorded command runs as without prof; prof stops on request.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use prof_tests::{Outcome, Program, Session, Stacks, signal, wait_until};

fn reports() -> String {
    Program::c(&["reports.c"])
        .build()
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn standard_streams_and_exit_status_are_the_commands() {
    let session = Session::new();
    let command = session.prof(["record", "--", &reports(), "3"]);
    let outcome = Outcome::with_input(command, "hello\n");
    outcome
        .assert_code(3)
        .assert_says(&["to stderr", "prof.data", "verdict"]);
    assert_eq!(outcome.stdout, "read: hello\n");
}

#[test]
fn quiet_means_that_only_the_command_speaks() {
    let session = Session::new();
    let outcome = session.run(["record", "-q", "--", &reports()]);
    outcome.assert_code(0);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("", "to stderr\n")
    );
}

#[test]
fn a_death_by_signal_is_128_and_the_signal() {
    let session = Session::new();
    for (signal, code) in [("15", 143), ("9", 137), ("11", 139)] {
        let outcome = session.run(["record", "--", &reports(), "kill", signal]);
        outcome.assert_code(code).assert_says(&["verdict"]);
        session.run(["report"]).assert_code(0);
    }
}

/// Daemons and wrappers ignore SIGCHLD, and everything that they start inherits that.
#[test]
fn ends_of_children_may_be_ignored() {
    let session = Session::new();
    let verbs = [
        "record",
        "record --sampler ptrace",
        "stat -e task-clock",
        "top --stdio",
    ];
    for verb in verbs {
        let script = format!("trap '' CHLD; exec \"$0\" {verb} -- grep SigIgn /proc/self/status");
        let words = [
            "-c".as_ref(),
            script.as_ref(),
            prof_tests::prof().as_os_str(),
        ];
        let outcome = Outcome::of(session.command(Path::new("bash"), words));
        outcome.assert_code(0);
        let mut printed = outcome.stdout.lines().chain(outcome.stderr.lines());
        let line = printed.find(|line| line.contains("SigIgn"));
        let ignored = line.and_then(|line| line.split_ascii_whitespace().last());
        let ignored = ignored.and_then(|set| u64::from_str_radix(set, 16).ok());
        assert!(
            ignored.is_some_and(|set| set >> 16 & 1 == 1),
            "{verb}: {outcome}"
        );
    }
}

/// prof raises its own limits on open files and locked memory.
#[test]
fn limits_are_the_commands_own() {
    let session = Session::new();
    // Each verb, also for a command that it starts when its limits are raised already.
    let verbs = [
        "record -q",
        "record -q --sampler ptrace",
        "stat -r 2 --per-thread",
    ];
    for verb in verbs {
        let script = format!(
            "ulimit -Sn 100 && ulimit -Sl 7 && exec \"$0\" {verb} -- sh -c 'ulimit -Sn; ulimit -Sl'"
        );
        let words = [
            "-c".as_ref(),
            script.as_ref(),
            prof_tests::prof().as_os_str(),
        ];
        let outcome = Outcome::of(session.command(Path::new("bash"), words));
        outcome.assert_code(0);
        let printed: Vec<_> = outcome.stdout.lines().collect();
        let (limits, rest) = printed.as_chunks::<2>();
        let are_right = limits.iter().all(|limits| *limits == ["100", "7"]);
        assert!(
            are_right && rest.is_empty() && !limits.is_empty(),
            "{verb}: {outcome}"
        );
    }
}

#[test]
fn commands_that_cannot_be_started() {
    let session = Session::new();
    let outcome = session.run(["record", "--", "no-such-command-anywhere"]);
    outcome
        .assert_code(127)
        .assert_says(&["no-such-command-anywhere", "not found"]);
    // A name writes no line of its own.
    for verb in ["record", "stat"] {
        let outcome = session.run([verb, "--", "no-such\nprof: fine\u{36f}"]);
        outcome
            .assert_code(127)
            .assert_says(&["no-such\\nprof: fine\\u{36f}: command not found"]);
    }
    session.write("text", b"no program");
    let outcome = session.run(["record", "--", "./text"]);
    outcome
        .assert_code(126)
        .assert_says(&["./text", "permission denied"]);
    let outcome = session.run(["record", "--", "/tmp"]);
    outcome.assert_code(126).assert_says(&["/tmp"]);
    assert!(
        !session.path("prof.data").exists(),
        "an empty recording is left behind"
    );
}

#[test]
fn a_command_without_dashes_and_with_its_own_flags() {
    let session = Session::new();
    let outcome = session.run(["record", "-F", "99", "echo", "-n", "-F", "x"]);
    outcome.assert_code(0);
    assert_eq!(outcome.stdout, "-F x");
}

#[test]
fn an_older_recording_is_kept() {
    let session = Session::new();
    session.record(&[], &[reports()]);
    let first = std::fs::read(session.path("prof.data")).unwrap();
    session.record(&[], &[reports()]);
    assert!(std::fs::read(session.path("prof.data.old")).unwrap() == first);
    session.record(&["-o", "other.data"], &[reports()]);
    assert!(session.path("other.data").exists() && !session.path("other.data.old").exists());
}

#[test]
fn strict_makes_a_bad_verdict_an_error() {
    let session = Session::new();
    let nothing = ["-e", "cpu-clock", "-c", "9000000000"];
    session
        .run(["record"].iter().chain(&nothing).chain(&["--", "true"]))
        .assert_code(0)
        .assert_says(&["BAD", "no samples"]);
    // The output is not the cause.
    let script = session.run(["script"]);
    script
        .assert_code(1)
        .assert_says(&["error: no samples to show"]);
    session
        .run(
            ["record", "--strict"]
                .iter()
                .chain(&nothing)
                .chain(&["--", "true"]),
        )
        .assert_code(3);
    let shares = Program::c(&["shares.c"]).build();
    let arguments = ["record", "-e", CLOCK, "--strict", "--"];
    session
        .run(arguments.iter().chain(&[shares.to_str().unwrap(), "300"]))
        .assert_code(0);
}

#[test]
fn strict_makes_too_few_samples_an_error() {
    let session = Session::new();
    let command = ["--strict", "--", &reports()];
    let few = ["record", "-e", CLOCK, "-c", "5000000"];
    session
        .run(few.iter().chain(&command))
        .assert_code(3)
        .assert_says(&["verdict: too few samples", "a smaller period (-c)"]);
    session.run(["report", "--strict"]).assert_code(3);
    let json = session.run(["report", "--json", "-"]).stdout;
    assert!(json.contains(r#""grade":"too-few-samples""#), "{json}");
    // With a period of 1, each event is a sample: few show all.
    session.record(&["-e", "page-faults:u", "-c", "1"], &["true"]);
    let recording = std::fs::read(session.path("prof.data")).unwrap();
    let settings = String::from_utf8_lossy(&recording);
    assert!(settings.contains(r#""every_event":true"#));
}

#[test]
fn the_time_can_be_limited() {
    let session = Session::new();
    let mut target = Waiting::start(session.command(&waits(), NONE));
    let arguments = ["record", "-e", CLOCK, "-p", &target.pid(), "-d", "0.5"];
    let outcome = session.run(arguments);
    outcome.assert_code(0).assert_says(&["verdict: good"]);
    target.assert_ends_well();
}

/// An event that never samples at the entry to the kernel, as cycles do: with few samples, one such
/// is enough for a worse verdict.
const CLOCK: &str = "cpu-clock";

const NONE: [&str; 0] = [];

fn waits() -> std::path::PathBuf {
    Program::c(&["waits.c"]).build()
}

/// A child that says when it is ready and works until its standard input ends.
struct Waiting {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    /// Starts `waits`, or prof that starts `waits`, and lets it become ready.
    fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, output }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Like Ctrl-C: SIGINT for the whole foreground group.
    fn interrupt(&self) {
        signal("-INT", format!("-{}", self.child.id()));
    }

    /// Ends the standard input: the target must still be there to notice.
    #[track_caller]
    fn assert_ends_well(&mut self) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "done\n");
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits until it ends by itself; returns the exit status.
    fn wait(&mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (
            status.code().or(status.signal().map(|signal| -signal)),
            said,
        )
    }
}

#[track_caller]
fn assert_valid(session: &Session, file: &str) {
    let outcome = session.run(["report", "-i", file, "--folded", "-"]);
    outcome.assert_code(0);
    let stacks = Stacks::from_folded(&outcome.stdout);
    stacks.assert_hottest(&["main", "until_input", "burn"]);
}

#[test]
fn ctrl_c_stops_the_command_and_leaves_a_valid_file() {
    let session = Session::new();
    let binary = waits();
    let arguments = ["record", "-e", CLOCK, "--", binary.to_str().unwrap()];
    let mut prof = Waiting::start(session.prof(arguments));
    prof.interrupt();
    let (code, said) = prof.wait();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("verdict: good"), "{said}");
    assert_valid(&session, "prof.data");
}

#[test]
fn sigterm_to_prof_alone_stops_the_command_too() {
    let session = Session::new();
    let binary = waits();
    let arguments = ["record", "-e", CLOCK, "--", binary.to_str().unwrap()];
    let mut prof = Waiting::start(session.prof(arguments));
    signal("-TERM", prof.pid());
    let (_, said) = prof.wait();
    assert!(said.contains("verdict: good"), "{said}");
    // The end of its output shows that the command has ended, too.
    let mut rest = String::new();
    prof.output.read_to_string(&mut rest).unwrap();
    assert_valid(&session, "prof.data");
}

/// `prof record -p` of the target, once it has said that it records.
fn attach(session: &Session, target: &Waiting) -> Child {
    let mut command = session.prof(["record", "-v", "-e", CLOCK, "-p", &target.pid()]);
    command
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Waits for tens of samples: a recording that has grown well beyond its header.
fn until_recording(prof: &mut Child, file: &Path) {
    wait_until(prof, || {
        std::fs::metadata(file).is_ok_and(|data| data.len() > 16384)
    });
}

#[test]
fn ctrl_c_with_a_pid_leaves_the_target_running() {
    let session = Session::new();
    let mut target = Waiting::start(session.command(&waits(), NONE));
    let mut prof = attach(&session, &target);
    until_recording(&mut prof, &session.path("prof.data"));
    signal("-INT", format!("-{}", prof.id()));
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("no sample lost"), "{said}");
    target.assert_ends_well();
    assert_valid(&session, "prof.data");
}

/// Under `nohup`, the end of the terminal does not end the recording.
#[test]
fn hangups_that_are_ignored_do_not_end_the_recording() {
    let session = Session::new();
    let mut target = Waiting::start(session.command(&waits(), NONE));
    let script = format!(
        "trap '' HUP; exec \"$0\" record -e {CLOCK} -p {}",
        target.pid()
    );
    let mut shell = session.command(Path::new("/bin/sh"), ["-c", &script]);
    let mut prof = shell
        .arg(prof_tests::prof())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let file = session.path("prof.data");
    until_recording(&mut prof, &file);
    signal("-HUP", prof.id());
    let before = std::fs::metadata(&file).unwrap().len();
    wait_until(&mut prof, || {
        std::fs::metadata(&file).is_ok_and(|data| data.len() > 2 * before)
    });
    signal("-INT", prof.id());
    assert!(prof.wait().unwrap().success());
    target.assert_ends_well();
}

/// Like `timeout`: one signal to the process, and one to its group. The command is recorded to its
/// end.
#[test]
fn two_signals_at_once_are_one() {
    let session = Session::new();
    for _ in 0..20 {
        let mut prof = session
            .prof([
                "record",
                "-o",
                "twice.data",
                "--",
                "sh",
                "-c",
                "trap 'for i in 1 2 3 4 5 6 7 8 9; do :; done; exit 5' INT; while :; do :; done",
            ])
            .process_group(0)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let file = session.path("twice.data");
        until_recording(&mut prof, &file);
        let twice = [
            "-c",
            "kill -INT $0 && kill -INT -- -$0",
            &prof.id().to_string(),
        ];
        assert!(Command::new("bash").args(twice).status().unwrap().success());
        let output = prof.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("twice.data") && said.contains("verdict: "),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(5), "{said}");
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_later_signal_ends_the_recording_of_a_command_that_goes_on() {
    let session = Session::new();
    let binary = waits();
    let ignores = "trap '' INT; exec \"$0\"";
    let command = ["sh", "-c", ignores, binary.to_str().unwrap()];
    let arguments = [&["record", "-e", CLOCK, "--"], &command[..]].concat();
    let mut prof = Waiting::start(session.prof(arguments));
    // Those at once count as one.
    while prof.child.try_wait().unwrap().is_none() {
        signal("-INT", prof.pid());
    }
    let (code, said) = prof.wait();
    // Once the verdict is printed, a signal ends prof as it ends other programs.
    assert!([Some(130), Some(-2)].contains(&code), "{code:?}: {said}");
    assert!(said.contains("the command goes on"), "{said}");
    assert!(said.contains("verdict: "), "{said}");
    drop(prof.child.stdin.take());
    let mut rest = String::new();
    prof.output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "done\n");
    assert_valid(&session, "prof.data");
}

#[test]
fn a_target_that_ends_ends_the_recording() {
    let session = Session::new();
    let mut target = Waiting::start(session.command(&waits(), NONE));
    let mut prof = attach(&session, &target);
    until_recording(&mut prof, &session.path("prof.data"));
    target.assert_ends_well();
    let output = prof.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_valid(&session, "prof.data");
}
