//! Processes whose memory does not answer do not hold up a recording.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prof_tests::{Endless, Need, Outcome, Program, Session, needs, signal};

const SILENT: Program = Program::c(&["hostile/silent.c"]);

/// Longer than any recording here takes: prof before it could give up such processes never ended.
const OUTER_DEADLINE: Duration = Duration::from_secs(120);

/// A process that computes on a stack below a page that does not answer.
struct Silent {
    child: Child,
    pid: String,
}

impl Silent {
    /// The page is in a FUSE file, of a process of this user.
    fn file(session: &Session, user: &str) -> Self {
        let mount = session.path("mount");
        std::fs::create_dir(&mount).unwrap();
        Self::start([OsStr::new("file"), mount.as_os_str(), OsStr::new(user)])
    }

    /// The page waits for userfaultfd.
    fn fault() -> Self {
        Self::start([OsStr::new("fault")])
    }

    fn start<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Self {
        let mut command = Command::new(SILENT.build());
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<String> = lines.take(2).map(Result::unwrap).collect();
        let [pid, ready] = lines.try_into().unwrap();
        assert_eq!(ready, "ready");
        Self { child, pid }
    }

    fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.end();
    }
}

/// What prof says when it has ended, though the memory does not answer. `then` is called once it
/// has been started.
fn outcome(mut prof: Command, silent: &mut Silent, then: impl FnOnce(&Child)) -> Outcome {
    prof.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = prof.spawn().unwrap();
    then(&child);
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > OUTER_DEADLINE {
            // Before that, not even SIGKILL would end it.
            silent.end();
            child.kill().unwrap();
            let said = child.wait_with_output().unwrap();
            panic!("prof hangs: {}", String::from_utf8_lossy(&said.stderr));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Outcome::new(&prof, child.wait_with_output().unwrap())
}

/// The folded stacks of `prof.data`.
fn stacks(session: &Session, of: &str) -> String {
    let words = [
        "report",
        "prof.data",
        "--no-inline",
        "--comm",
        of,
        "--folded",
        "-",
    ];
    let report = session.run(words);
    report.assert_code(0);
    report.stdout
}

/// The machine beside such a process is recorded.
fn check_machine(session: &Session, mut silent: Silent) {
    let stranger = Endless::install(session, "stranger");
    let _stranger = Endless::start(session.command(&stranger, ["60"]));
    let words = [
        "record",
        "-a",
        "-e",
        "cpu-clock:u",
        "-F",
        "499",
        "-d",
        "1.5",
    ];
    let outcome = outcome(session.prof(words), &mut silent, |_| ());
    outcome.assert_code(0);
    outcome.assert_says(&["silent did not answer"]);
    assert!(
        stacks(session, "^stranger$").contains("leading"),
        "{outcome}"
    );
    assert!(
        stacks(session, "^silent$").contains("silent_leaf"),
        "{outcome}"
    );
}

#[test]
fn a_file_system_that_does_not_answer_holds_up_nobody() {
    if !needs(&[Need::Root, Need::Fuse]) {
        return;
    }
    let session = Session::new();
    let silent = Silent::file(&session, "65534");
    check_machine(&session, silent);
}

#[test]
fn page_faults_that_nobody_handles_hold_up_nobody() {
    if !needs(&[Need::Root, Need::UserFaults]) {
        return;
    }
    check_machine(&Session::new(), Silent::fault());
}

#[test]
fn a_process_that_does_not_answer_is_recorded_itself() {
    if !needs(&[Need::Root, Need::Fuse]) {
        return;
    }
    let session = Session::new();
    let mut silent = Silent::file(&session, "65534");
    let pid = silent.pid.clone();
    let words = [
        "record",
        "-p",
        &pid,
        "-e",
        "cpu-clock:u",
        "-F",
        "499",
        "-d",
        "1",
    ];
    let outcome = outcome(session.prof(words), &mut silent, |_| ());
    outcome.assert_code(0);
    outcome.assert_says(&["silent did not answer"]);
    assert!(
        stacks(&session, "^silent$").contains("silent_leaf"),
        "{outcome}"
    );
}

#[test]
fn a_plain_user_can_record_it_as_well() {
    if !needs(&[
        Need::Root,
        Need::Fuse,
        Need::Tool("setpriv"),
        Need::PlainSampling,
    ]) {
        return;
    }
    let session = Session::plain_user();
    let user = Outcome::of(session.command(Path::new("id"), ["-u"])).stdout;
    let mut silent = Silent::file(&session, user.trim());
    let pid = silent.pid.clone();
    let words = [
        "record",
        "-p",
        &pid,
        "-e",
        "cpu-clock:u",
        "-F",
        "499",
        "-d",
        "1",
    ];
    let outcome = outcome(session.prof(words), &mut silent, |_| ());
    outcome.assert_code(0);
    outcome.assert_says(&["silent did not answer"]);
}

#[test]
fn signals_end_a_recording_of_it() {
    if !needs(&[Need::Root, Need::Fuse]) {
        return;
    }
    let session = Session::new();
    let mut silent = Silent::file(&session, "65534");
    let pid = silent.pid.clone();
    for name in ["-INT", "-TERM"] {
        let _ = std::fs::remove_file(session.path("prof.data"));
        let prof = session.prof(["record", "-p", &pid, "-e", "cpu-clock:u", "-F", "499"]);
        let interrupt = |prof: &Child| {
            let data = session.path("prof.data");
            let has_samples = || data.metadata().is_ok_and(|file| file.len() > 20_000);
            let begin = Instant::now();
            while !has_samples() && begin.elapsed() < OUTER_DEADLINE {
                std::thread::sleep(Duration::from_millis(10));
            }
            signal(name, prof.id());
        };
        let outcome = outcome(prof, &mut silent, interrupt);
        outcome.assert_code(0);
        outcome.assert_says(&["silent did not answer"]);
    }
}
