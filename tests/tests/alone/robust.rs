//! Whatever happens to the target, to prof or to the disk: nothing hangs, written data can be read,
//! and missing data is reported.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use prof_tests::{
    Compiler, Need, Outcome, Program, Session, Stacks, USER_CODE, assert_shares, copy_executable,
    needs, perf_script, signal, wait_until,
};

const SHARES: Program = Program::c(&["shares.c"]);
const STORM: Program = Program::new(&["storm.c"], Compiler::Gcc, &["-pthread", "-ldl"]);

/// Ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn signal(&self, name: &str) {
        signal(name, self.pid());
    }
}

fn busy(session: &Session) -> Running {
    let binary = session.install(&SHARES.build());
    let mut command = session.command(&binary, ["1000000"]);
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

/// `prof record -p` of a target, from the moment on at which its file holds records.
fn attached(session: &Session, target: &Running, options: &[&str]) -> Running {
    let pid = target.pid();
    let mut arguments = vec!["record"];
    arguments.extend(options);
    arguments.extend(["-p", &pid]);
    let mut command = session.prof(arguments);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running(child);
    let file = session.path("prof.data");
    // The first checkpoint may hold processes only: samples come with a later one.
    wait_until(&mut running.0, || data_size(&file) > 0);
    let first = data_size(&file);
    wait_until(&mut running.0, || data_size(&file) > first);
    running
}

/// The size of the records, by the header.
fn data_size(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap_or_default();
    let field = bytes.get(48..56).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(field.unwrap_or_default())
}

fn reported(session: &Session) -> (Outcome, Stacks) {
    let outcome = session.run(["report", "--no-inline", "--folded", "-"]);
    outcome.assert_code(0);
    let stacks = Stacks::from_folded(&outcome.stdout);
    (outcome, stacks)
}

#[test]
fn one_signal_is_enough_and_another_one_loses_nothing() {
    for signals in [
        &["-INT"][..],
        &["-TERM"],
        &["-HUP"],
        &["-INT", "-INT", "-TERM"],
    ] {
        let session = Session::new();
        let target = busy(&session);
        let mut prof = attached(&session, &target, &[]);
        for signal in signals {
            prof.signal(signal);
        }
        let status = prof.0.wait().unwrap();
        // A second signal may come when all is written, and then ends prof as it ends anybody.
        assert!(
            status.success() || signals.len() > 1,
            "{signals:?} {status}"
        );
        let (outcome, stacks) = reported(&session);
        let reported = outcome.stderr.contains("ends early");
        assert!(!reported && stacks.total() > 0, "{signals:?} {outcome}");
    }
}

#[test]
fn the_file_of_a_killed_recorder_can_be_read() {
    let session = Session::new();
    let target = busy(&session);
    let mut prof = attached(&session, &target, &["-e", "cpu-clock"]);
    prof.signal("-KILL");
    prof.0.wait().unwrap();
    let (outcome, stacks) = reported(&session);
    outcome.assert_says(&["ends early"]);
    assert!(stacks.total() > 0, "{outcome}");
    stacks.assert_whole(0.99);
    if needs(&[Need::Tool("perf")]) {
        assert!(!perf_script(&session.path("prof.data")).is_empty());
    }
}

/// Records stacks, which are large, to a file system with little space; returns the outcomes of the
/// recording and of a report under the same conditions.
fn record_without_room(session: &Session, prepare: &str) -> (Outcome, Outcome) {
    let binary = session.install(&SHARES.build());
    let prof = session.path("prof-here");
    if !prof.exists() {
        copy_executable(prof_tests::prof(), &prof);
    }
    let record = format!(
        "{prepare} && ../prof-here record --no-unwind -F 1999 -- {} 3000",
        binary.display()
    );
    fs::create_dir_all(session.path("small")).unwrap();
    let run = |script: String| {
        let mut command = session.command(Path::new("unshare"), ["--mount", "sh", "-c"]);
        command.arg(script);
        Outcome::of(command)
    };
    let recorded = run(format!(
        "{record}; code=$?; cp prof.data ../prof.data; exit $code"
    ));
    let report = session.run(["report", "--folded", "-"]);
    (recorded, report)
}

#[test]
fn a_full_disk() {
    if !needs(&[Need::Root, Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let mount = "mount -t tmpfs -o size=2m none small && cd small";
    let (recorded, report) = record_without_room(&session, mount);
    recorded
        .assert_code(1)
        .assert_says(&["prof.data", "no space left"]);
    report.assert_code(0).assert_says(&["ends early"]);
    assert!(Stacks::from_folded(&report.stdout).total() > 0, "{report}");
}

#[test]
fn a_limit_on_the_size_of_files() {
    if !needs(&[Need::Root, Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    // In blocks of 512 bytes.
    let (recorded, report) = record_without_room(&session, "cd small && ulimit -f 4096");
    recorded
        .assert_code(1)
        .assert_says(&["prof.data", "too large"]);
    report.assert_code(0).assert_says(&["ends early"]);
    assert!(Stacks::from_folded(&report.stdout).total() > 0, "{report}");
}

#[test]
fn processes_that_end_while_they_are_attached_to() {
    let session = Session::new();
    for _ in 0..30 {
        let mut target = Command::new("sh").args(["-c", "exit"]).spawn().unwrap();
        let outcome = session.run(["record", "-p", &target.id().to_string()]);
        target.wait().unwrap();
        let code = outcome.status.code();
        assert!(matches!(code, Some(0 | 1)), "{outcome}");
        if code == Some(1) {
            outcome.assert_says(&["error"]);
        }
    }
}

#[test]
fn programs_that_gain_privileges_go_unseen_and_unharmed() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let shares = session.install(&SHARES.build());
    let privileged = session.path("privileged");
    copy_executable(Path::new("/usr/bin/id"), &privileged);
    fs::set_permissions(&privileged, Permissions::from_mode(0o4755)).unwrap();
    let script = format!(
        "{0} 300; {1} -u; {0} 300",
        shares.display(),
        privileged.display()
    );
    let recorded = session.record(USER_CODE, &["sh", "-c", &script]);
    // Its user id shows that it really gained them.
    assert_eq!(recorded.outcome.stdout, "0\n");
    let stacks = recorded.physical_stacks();
    let share = stacks.share(|frames| frames.iter().any(|frame| frame == "work"));
    assert!(share > 0.9, "{stacks}");
    recorded
        .outcome
        .assert_says(&["privileged is not sampled: it gains"]);
    let unseen = session.run(["record", "--", privileged.to_str().unwrap()]);
    let why = "nothing was sampled: privileged is not sampled: it gains privileges";
    unseen.assert_code(0).assert_says(&[why]);
}

/// Records a storm, and says how much memory prof took at most, in KiB.
fn storm(session: &Session, options: &[&str], arguments: &[&str]) -> (Outcome, u64) {
    let binary = session.install(&STORM.build());
    let mut words: Vec<OsString> = vec!["record".into()];
    words.extend(options.iter().map(OsString::from));
    words.extend(["--".into(), binary.into_os_string()]);
    words.extend(arguments.iter().map(OsString::from));
    let mut command = session.prof(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_of(child.id()).unwrap_or(0));
        // Do not take CPU time from the measured program.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let outcome = Outcome::new(&command, child.wait_with_output().unwrap());
    outcome.assert_code(0);
    println!("{arguments:?}: at most {peak} KiB");
    (outcome, peak)
}

fn peak_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How many records of a kind perf finds in the recording.
fn records(session: &Session, option: &str, kind: &str) -> usize {
    let mut perf = Command::new("perf");
    perf.args(["script", option, "-F", "comm", "-i"])
        .arg(session.path("prof.data"));
    let outcome = Outcome::of(perf);
    outcome
        .stdout
        .lines()
        .filter(|line| line.contains(kind))
        .count()
}

/// The most memory that a storm may use: rings, queue and unwinder are bounded.
const MEMORY_KIB: u64 = 300 << 10;

fn check_forks(count: usize) {
    let session = Session::alone();
    let (_, peak) = storm(&session, &[], &["fork", &count.to_string()]);
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    if needs(&[Need::Tool("perf")]) {
        assert_eq!(
            records(&session, "--show-task-events", "PERF_RECORD_FORK"),
            count
        );
        // And the first program itself.
        assert_eq!(
            records(&session, "--show-task-events", "PERF_RECORD_EXIT"),
            count + 1
        );
    }
}

#[test]
fn a_fork_storm() {
    check_forks(1000);
}

fn check_threads(count: usize) {
    let session = Session::alone();
    let (_, peak) = storm(&session, &[], &["thread", &count.to_string()]);
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    if needs(&[Need::Tool("perf")]) {
        assert_eq!(
            records(&session, "--show-task-events", "PERF_RECORD_FORK"),
            count
        );
    }
}

#[test]
fn thread_churn() {
    check_threads(5000);
}

#[test]
fn thousands_of_mapped_files() {
    let session = Session::alone();
    let folder = session.path("mapped");
    fs::create_dir(&folder).unwrap();
    let arguments = ["map", "5000", folder.to_str().unwrap()];
    // Cycles are also sampled while the kernel is being entered, where stacks may be broken.
    let (outcome, peak) = storm(&session, &["-e", "cpu-clock"], &arguments);
    outcome.assert_says(&["verdict: good"]);
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    if needs(&[Need::Tool("perf")]) {
        assert_eq!(
            records(&session, "--show-mmap-events", "/mapped/mapped"),
            5000
        );
    }
    let (_, stacks) = reported(&session);
    stacks.assert_whole(0.99);
}

fn check_loads(count: u64) {
    let session = Session::alone();
    let flags = &["-shared", "-fPIC", "-DNAME=plugin"];
    let library = Program::new(&["plugin.c"], Compiler::Gcc, flags).build();
    let arguments = ["dlopen", &count.to_string(), library.to_str().unwrap()];
    let (_, peak) = storm(&session, &["-e", "cpu-clock"], &arguments);
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    let (_, stacks) = reported(&session);
    let share = stacks.share(|frames| frames.iter().any(|frame| frame == "in_plugin"));
    assert!(share > 0.5, "{stacks}");
    stacks.assert_whole(0.99);
}

#[test]
fn libraries_that_come_and_go() {
    check_loads(2000);
}

#[test]
fn one_cpu_is_enough() {
    if !needs(&[Need::Tool("taskset")]) {
        return;
    }
    let session = Session::new();
    let launcher = ["taskset", "--cpu-list", "0"].map(OsString::from);
    let binary = SHARES.build();
    let words = [
        "record",
        "-e",
        "cpu-clock",
        "--",
        binary.to_str().unwrap(),
        "300",
    ];
    let outcome = Outcome::of(session.prof_under(&launcher, words));
    outcome.assert_code(0).assert_says(&["verdict: good"]);
    let (_, stacks) = reported(&session);
    stacks.assert_hottest(&["main", "work", "burn_sixty"]);
}

#[test]
fn the_fastest_rate_keeps_shares_and_reports_throttling() {
    let session = Session::alone();
    let binary = SHARES.build();
    let options = ["-F", "max", "-e", "cpu-clock:u"];
    let recorded = session.record(&options, &[binary.to_str().unwrap(), "500"]);
    let expected = [("burn_sixty", 0.6), ("burn_thirty", 0.3), ("burn_ten", 0.1)];
    let stacks = recorded.physical_stacks();
    let leaves = stacks.with_leaves(&expected.map(|(name, _)| name));
    assert_shares(&leaves, recorded.samples().min(2000), &expected);
    if needs(&[Need::Tool("perf")]) {
        let mut perf = Command::new("perf");
        perf.args(["report", "-D", "-i"]).arg(&recorded.file);
        let dump = Outcome::of(perf).stdout;
        let throttled = dump
            .lines()
            .any(|line| line.contains("PERF_RECORD_THROTTLE"));
        assert_eq!(
            throttled,
            recorded.outcome.stderr.contains("throttled"),
            "{}",
            recorded.outcome
        );
    }
}
