//! Time off the CPUs: as long as the waiting program's own clock says, where it waits. As root,
//! when the kernel reports the stack of each wait, and as a plain user, when prof reads the stacks
//! of threads while they wait.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use prof_tests::{
    Compiler, Need, Outcome, Program, Recorded, Session, Stacks, needs, signal, spawn_ready,
    wait_until,
};
use serde_json::Value;

const AS_ROOT: &[Need] = &[Need::Root];
const AS_PLAIN_USER: &[Need] = &[Need::Root, Need::Tool("setpriv"), Need::PlainSampling];

/// With frames that need the frame pointer, which is unknown while a thread waits.
const WITH_FRAME_POINTERS: Program = Program::new(
    &["waiting.c"],
    Compiler::Gcc,
    &["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"],
);

/// Of 301 waits, one is longer than all others and has no whole stack.
#[test]
fn a_long_wait_without_a_whole_stack_is_not_good() {
    if !needs(AS_ROOT) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["unequal.c"]).build();
    let command = [binary.to_str().unwrap(), "10", "2000"];
    let recorded = session.record(&["--off-cpu"], &command);
    let words = [
        "verdict: BAD: 99.",
        " % of the waiting time has a whole stack",
    ];
    recorded.outcome.assert_says(&words);
}

/// Functions of many shapes that keep a frame pointer, without and with optimization.
const SHAPES: [Program; 2] = [
    Program::new(
        &["waits_in_shapes.c"],
        Compiler::Gcc,
        &["-O0", "-fno-omit-frame-pointer"],
    ),
    Program::new(
        &["waits_in_shapes.c"],
        Compiler::Gcc,
        &["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"],
    ),
];

/// The program's measurements: function and nanoseconds.
fn own_clock(recorded: &Recorded<'_>) -> BTreeMap<String, u64> {
    let lines = recorded.outcome.stdout.lines();
    let measured = lines.map(|line| line.split_once(' ').unwrap());
    measured
        .map(|(function, time)| (function.to_owned(), time.parse().unwrap()))
        .collect()
}

fn time_in(stacks: &Stacks, frames: &[&str]) -> u64 {
    let has = |stack: &[String]| frames.iter().all(|frame| stack.iter().any(|f| f == frame));
    let fitting = stacks.iter().filter(|(stack, _)| has(stack));
    fitting.map(|(_, weight)| weight).sum()
}

/// Waits are as long as the program says. Between its clock and the switch off the CPU and back
/// there is little except, on a busy machine, the time slices of other programs, which the program
/// measures separately.
#[track_caller]
fn assert_waits(recorded: &Recorded<'_>, stacks: &Stacks) {
    let (clock, guessed) = (own_clock(recorded), guessed(recorded, stacks));
    for function in ["sleeps", "locks", "reads"] {
        let (found, measured) = (time_in(stacks, &[function]), clock[function]);
        let waited = measured.saturating_sub(clock[&format!("{function}_queued")]);
        let least = (waited / 100 * 95).saturating_sub(guessed);
        let most = measured / 100 * 101 + guessed;
        assert!(
            (least.max(waited / 2)..most).contains(&found),
            "{function}: {found} ns recorded, {measured} ns by its own clock, {guessed} ns guessed: \
             {}\n{stacks}",
            recorded.outcome
        );
    }
}

/// The share of unseen waits, by prof's own message, to a tenth of a percent: prof did not get a
/// CPU in time. A small share may be counted elsewhere.
#[track_caller]
fn guessed(recorded: &Recorded<'_>, stacks: &Stacks) -> u64 {
    let said = &recorded.outcome.stderr;
    let Some((before, _)) = said.split_once(" % of the waiting time has a stack") else {
        return 0;
    };
    let seen: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(seen >= 80.0, "{}", recorded.outcome);
    (stacks.total() as f64 * (100.1 - seen) / 100.0) as u64
}

/// Records the waiting program, and compares with its own clock.
fn check_waits(session: &Session, program: Program) {
    let binary = session.install(&program.build());
    let recorded = session.record(&["--off-cpu"], &[binary]);
    let stacks = recorded.physical_stacks();
    assert_waits(&recorded, &stacks);
    assert_eq!(time_in(&stacks, &["computes"]), 0);
    // Unseen time is a stack of its own.
    let unseen = time_in(&stacks, &["[wait, stack not seen]"]);
    assert!(unseen <= guessed(&recorded, &stacks), "{stacks}");
}

#[test]
fn waits_are_where_and_as_long_as_the_program_says() {
    if needs(AS_ROOT) {
        check_waits(&Session::new(), Program::c(&["waiting.c"]));
    }
}

#[test]
fn plain_users_see_the_same() {
    if needs(AS_PLAIN_USER) {
        check_waits(&Session::plain_user(), Program::c(&["waiting.c"]));
    }
}

#[test]
fn plain_users_see_through_frame_pointers() {
    if needs(AS_PLAIN_USER) {
        check_waits(&Session::plain_user(), WITH_FRAME_POINTERS);
    }
}

#[test]
fn frame_pointers_are_found_by_the_code_before() {
    if !needs(AS_PLAIN_USER) {
        return;
    }
    for program in SHAPES {
        let session = Session::plain_user();
        let binary = session.install(&program.build());
        let stacks = session.record(&["--off-cpu"], &[binary]).stacks();
        stacks.assert_whole(0.95);
        for function in ["in_loop", "in_branch", "in_switch", "behind_early_exit"] {
            let waited = time_in(&stacks, &["main", function]);
            assert!(waited > 80_000_000, "{program:?}, {function}: {stacks}");
        }
    }
}

#[test]
fn frame_pointers_that_a_plain_user_cannot_see_are_named() {
    if !needs(AS_PLAIN_USER) {
        return;
    }
    let session = Session::plain_user();
    let binary = session.install(&SHAPES[0].build());
    let command = [binary.as_os_str(), "variable".as_ref()];
    let recorded = session.record(&["--off-cpu"], &command);
    recorded.outcome.assert_says(&[
        "registers of a blocked thread are hidden from plain users",
        "record as root",
    ]);
}

/// A wait has its length: a program that waits needs no samples to be known.
#[track_caller]
fn check_sleep(session: &Session) {
    let recorded = session.record(&["--wall"], &["sleep", "0.5"]);
    let said = &recorded.outcome.stderr;
    for word in ["BAD", "too few", "no sample ("] {
        assert!(!said.contains(word), "{said}");
    }
}

#[test]
fn a_program_that_sleeps_is_known_from_its_one_wait() {
    check_sleep(&Session::new());
    if needs(AS_PLAIN_USER) {
        check_sleep(&Session::plain_user());
    }
}

#[test]
fn waits_on_all_cpus_include_all_users() {
    if !needs(AS_ROOT) {
        return;
    }
    let session = Session::alone();
    let binary = Program::c(&["waiting.c"]).build();
    // Many may wait on a busy machine: their stacks must fit the rings.
    let small = ["-a", "--call-graph", "dwarf,8192"];
    for what in ["--off-cpu", "--wall"] {
        let options = [&small[..], &[what]].concat();
        // The load of a busy machine may be too high: prof says so then.
        let mut runs = (0..10).map(|_| session.record(&options, &[&binary]));
        let whole = |it: &Recorded<'_>| it.outcome.stderr.contains("no sample lost");
        let recorded = runs.find(whole).expect("a run without a loss");
        let stacks = recorded.physical_stacks();
        assert_waits(&recorded, &stacks);
        assert!(stacks.processes().len() > 1, "{stacks}");
    }
}

/// It waits for samples.
#[test]
fn waits_on_all_cpus_are_not_those_of_prof_itself() {
    if !needs(AS_ROOT) {
        return;
    }
    let session = Session::new();
    let script = "echo $$; exec \"$0\" record -a --wall -o prof.data -- sleep 1";
    let launcher = ["sh", "-c", script].map(OsString::from);
    let outcome = Outcome::of(session.prof_under(&launcher, [""; 0]));
    outcome.assert_code(0);
    let ours = format!(" {}:", outcome.stdout.trim());
    for (event, expected) in [("cpu-clock", true), ("offcpu-time", false)] {
        let report = ["report", "-i", "prof.data", "--event", event];
        let report = session.run([&report[..], &["--by", "process"]].concat());
        assert_eq!(report.stdout.contains(&ours), expected, "{ours} {report}");
    }
}

/// They leave their CPUs for the last time after their end.
#[test]
fn threads_that_have_ended_do_not_wait() {
    if !needs(AS_ROOT) {
        return;
    }
    let session = Session::new();
    let script = "for i in 1 2 3 4 5; do /bin/true; done; sleep 0.2";
    let recorded = session.record(&["-a", "--off-cpu"], &["sh", "-c", script]);
    let stacks = recorded.physical_stacks();
    assert!(
        time_in(&stacks, &["clock_nanosleep"]) >= 200_000_000,
        "{stacks}"
    );
    assert_eq!(time_in(&stacks, &["do_task_dead"]), 0, "{stacks}");
}

/// The kernel samples every switch; the verdict speaks of the waits, which are recorded.
#[test]
fn stacks_of_threads_that_lose_their_cpu_are_not_counted() {
    if !needs(AS_ROOT) || !needs(&[Need::Tool("taskset")]) {
        return;
    }
    let session = Session::new();
    let threads = Program::c(&["threads.c"]).build();
    let one_cpu = [
        "taskset",
        "--cpu-list",
        "0",
        threads.to_str().unwrap(),
        "300",
    ];
    let recorded = session.record(&["--off-cpu"], &one_cpu);
    let report = recorded.report(&["--json", "-"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let count = |what: &str| report["quality"][what].as_u64().unwrap();
    let (stacks, samples) = (count("user_stacks"), count("samples"));
    assert!(stacks <= samples, "{}", recorded.outcome);
}

/// A thread waits while sampling is off, when it is switched on, and when it is switched off: only
/// the sampled part of each wait counts. As root, prof learns the stack of a wait when it begins.
fn check_controlled_waits(session: &Session, sees_earlier: bool) {
    for name in ["commands", "answers"] {
        let mut mkfifo = std::process::Command::new("mkfifo");
        let made = mkfifo.args(["-m", "666"]).arg(session.path(name)).status();
        assert!(made.unwrap().success());
    }
    let binary = session.install(&Program::c(&["controlled_waits.c"]).build());
    let control = "fifo:commands,answers";
    let options = ["--off-cpu", "--delay", "-1", "--control", control];
    let command = [binary.to_str().unwrap(), "commands", "answers"];
    let recorded = session.record(&options, &command);
    let stacks = recorded.physical_stacks();
    assert_eq!(time_in(&stacks, &["never_on"]), 0, "{stacks}");
    for line in recorded.outcome.stdout.lines() {
        let mut words = line.split(' ');
        let function = words.next().unwrap();
        let [least, most] = [(); 2].map(|()| words.next().unwrap().parse::<u64>().unwrap());
        let found = time_in(&stacks, &[function]);
        match function == "from_on" && !sees_earlier {
            true => assert_eq!(found, 0, "{stacks}"),
            false => assert!((least..=most).contains(&found), "{line}: {found}"),
        }
    }
}

#[test]
fn only_the_sampled_part_of_a_wait_counts() {
    if needs(AS_ROOT) {
        check_controlled_waits(&Session::new(), false);
    }
}

#[test]
fn only_the_sampled_part_of_a_plain_users_wait_counts() {
    if needs(AS_PLAIN_USER) {
        check_controlled_waits(&Session::plain_user(), true);
    }
}

fn check_wall(session: &Session) {
    let binary = session.install(&Program::c(&["waiting.c"]).build());
    let recorded = session.record(&["--wall"], &[binary]);
    let stacks = recorded.physical_stacks();
    let clock = own_clock(&recorded);
    assert_waits(&recorded, &stacks);
    let (on, off) = ("[on-CPU]", "[off-CPU]");
    assert!(time_in(&stacks, &[on, "computes"]) > 100_000_000);
    assert!(time_in(&stacks, &[off, "sleeps"]) > clock["sleeps"] / 2);
    assert_eq!(time_in(&stacks, &[off, "computes"]), 0);
    assert_eq!(
        stacks.total(),
        time_in(&stacks, &[on]) + time_in(&stacks, &[off])
    );
    // Each of the two is a view of its own as well.
    let only_off = recorded.report(&["--event", "offcpu-time", "--folded", "-"]);
    assert!(!only_off.stdout.contains(off) && only_off.stdout.contains("sleeps"));
    // Samples are printed as they were recorded: once.
    let samples = session.run(["script", "-i", recorded.file.to_str().unwrap()]);
    assert!(!samples.stdout.contains("wall-clock"), "{samples}");
    let times = samples.stdout.lines().filter_map(|line| {
        let (_, sample) = line.split_once(": ")?;
        let (time, event) = sample.trim().split_once(' ')?;
        let is_time = ["cpu-clock", "offcpu-time"]
            .iter()
            .any(|it| event.starts_with(it));
        is_time.then(|| time.parse::<u64>().unwrap())
    });
    let off_by = times.sum::<u64>().abs_diff(stacks.total());
    assert!(
        off_by < stacks.total() / 4,
        "{off_by} of {}",
        stacks.total()
    );
    check_pprof(session, &recorded);
}

/// Checks how another reader understands each view.
fn check_pprof(session: &Session, recorded: &Recorded<'_>) {
    if !needs(&[Need::Tool("go")]) {
        return;
    }
    for (event, expected) in [
        (&[][..], "wall/nanoseconds[dflt]"),
        (&["--event", "offcpu-time"], "off-cpu/nanoseconds[dflt]"),
        (&["--event", "cpu-clock"], "cpu/nanoseconds[dflt]"),
    ] {
        recorded.report(&[&["--pprof", "waits.pb.gz"], event].concat());
        let mut go = Command::new("go");
        go.args(["tool", "pprof", "-raw"])
            .arg(session.path("waits.pb.gz"));
        let read = Outcome::of(go);
        let types = read
            .stdout
            .lines()
            .find(|line| line.starts_with("samples/count"));
        assert_eq!(types, Some(&*format!("samples/count {expected}")), "{read}");
    }
}

#[test]
fn all_time_is_in_one_view_with_two_roots() {
    if needs(AS_ROOT) {
        check_wall(&Session::new());
    }
}

#[test]
fn plain_users_have_that_view_too() {
    if needs(AS_PLAIN_USER) {
        check_wall(&Session::plain_user());
    }
}

/// The waits of a function of `disk.c`, by its own clock.
struct DiskWaits {
    /// Nanoseconds off the CPU, including time of interrupts and the hypervisor in calls that
    /// waited.
    time: u64,
    waits: u64,
    preemptions: u64,
}

impl DiskWaits {
    /// The kernel reports a switch some microseconds after the thread's own clock starts: longer in
    /// a virtual machine.
    const SWITCH: u64 = 50_000;

    fn parse(line: &str) -> (String, Self) {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        let [time, waits, preemptions] = [(); 3].map(|()| words.next().unwrap().parse().unwrap());
        let all = Self {
            time,
            waits,
            preemptions,
        };
        (name, all)
    }

    fn longest(&self) -> u64 {
        self.time / 100 * 110 + (self.waits + self.preemptions) * Self::SWITCH
    }
}

/// The total of disk waits is never longer than the program measured, for all users.
fn check_disk(session: &Session) -> (Recorded<'_>, BTreeMap<String, DiskWaits>) {
    let binary = session.install(&Program::c(&["disk.c"]).build());
    let file = session.path("written");
    let recorded = session.record(&["--off-cpu"], &[binary.as_os_str(), file.as_os_str()]);
    let lines = recorded.outcome.stdout.lines();
    let known: BTreeMap<_, _> = lines.map(DiskWaits::parse).collect();
    let total = recorded.physical_stacks().total();
    let longest: u64 = known.values().map(DiskWaits::longest).sum();
    assert!((1..=longest).contains(&total), "{total} ns of {longest}");
    (recorded, known)
}

#[test]
fn waits_for_the_disk() {
    if !needs(AS_ROOT) {
        return;
    }
    let session = Session::alone();
    let (recorded, known) = check_disk(&session);
    let script = session.run(["script", "-i", recorded.file.to_str().unwrap()]);
    let stacks = recorded.physical_stacks();
    for (function, waits) in known {
        let frame = format!(" {function} (");
        let samples = script.stdout.split("\n\n");
        let seen = samples.filter(|sample| sample.contains(&frame)).count() as u64;
        let DiskWaits {
            waits: times,
            preemptions,
            ..
        } = waits;
        assert!(
            (times..=times + preemptions).contains(&seen),
            "{seen} of {times} waits, {preemptions} preemptions in {function}:\n{}",
            script.stdout
        );
        let time = time_in(&stacks, &[&function]);
        assert!(
            time <= waits.longest(),
            "{time} ns in {function}:\n{stacks}"
        );
    }
}

/// Disk waits are short, so that a plain user sees only some, fewer on a busy machine; these
/// represent the others of their length, and what is left is marked.
#[test]
fn waits_of_plain_users_for_the_disk() {
    if !needs(AS_PLAIN_USER) {
        return;
    }
    let session = Session::plain_user();
    let (recorded, _) = check_disk(&session);
    let stacks = recorded.physical_stacks();
    let seen = time_in(&stacks, &["main"]);
    assert!(seen > 0, "{stacks}");
    let unseen = time_in(&stacks, &["[wait, stack not seen]"]);
    assert_eq!(seen + unseen, stacks.total(), "{stacks}");
}

/// Records a process that sleeps before, during and after: all of it, or its first thread.
fn check_attached(session: &Session) {
    check_attached_by(session, "-p", 2, false);
    check_attached_by(session, "-t", 0, false);
    check_attached_by(session, "-p", 2, true);
}

/// Whether all threads of a process are in a state (proc(5)).
fn are_in_state(pid: &str, state: &str) -> bool {
    let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.all(|task| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_ascii_whitespace().next() == Some(state)
    })
}

fn check_attached_by(session: &Session, flag: &str, others: u64, stopped: bool) {
    let program = session.install(&Program::c(&["asleep.c"]).build());
    let mut target = spawn_ready(session.command(&program, ["0"; 0]));
    let pid = target.id().to_string();
    if stopped {
        wait_until(&mut target, || are_in_state(&pid, "S"));
        signal("-STOP", &pid);
        wait_until(&mut target, || are_in_state(&pid, "T"));
    }
    let before = Instant::now();
    let recorded = session.run(["record", "--off-cpu", "-d", "500ms", flag, &pid]);
    let longest = before.elapsed().as_nanos() as u64;
    if stopped {
        signal("-CONT", &pid);
    }
    drop(target.stdin.take());
    target.wait().unwrap();
    recorded.assert_code(0);
    let report: Outcome =
        session.run(["report", "-i", "prof.data", "--no-inline", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    for (waits, threads) in [("waits_for_input", 1), ("waits_for_the_lock", others)] {
        let found = time_in(&stacks, &[waits]);
        // A little may pass before main waits again after its word.
        let expected = 450_000_000 * threads..=longest * threads;
        assert!(
            expected.contains(&found),
            "{waits}: {found}\n{}",
            report.stdout
        );
    }
}

#[test]
fn waits_that_began_before_count_from_the_begin() {
    if needs(AS_ROOT) {
        check_attached(&Session::new());
    }
}

#[test]
fn plain_users_waits_that_began_before_count_from_the_begin() {
    if needs(AS_PLAIN_USER) {
        check_attached(&Session::plain_user());
    }
}

const WAITING_PYTHON: &str = "\
import sys
def waits_for_input():
    print('ready', flush=True)
    sys.stdin.readline()
waits_for_input()
";

/// Nobody runs when sampling begins: that it is Python is found later.
fn check_attached_to_python(session: &Session) {
    let program = session.write("waiting.py", WAITING_PYTHON.as_bytes());
    let mut target = spawn_ready(session.command(Path::new("/usr/bin/python3"), [program]));
    let pid = target.id().to_string();
    wait_until(&mut target, || are_in_state(&pid, "S"));
    let recorded = session.run(["record", "--off-cpu", "-d", "500ms", "-p", &pid]);
    drop(target.stdin.take());
    target.wait().unwrap();
    recorded.assert_code(0);
    let report: Outcome = session.run(["report", "-i", "prof.data", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    let share = time_in(&stacks, &["waits_for_input"]) as f64 / stacks.total() as f64;
    assert!(share > 0.9, "{share}\n{}", report.stdout);
}

#[test]
fn waits_of_python_that_began_before_have_functions() {
    if needs(&[&[Need::Tool("python3")], AS_PLAIN_USER].concat()) {
        check_attached_to_python(&Session::new());
        check_attached_to_python(&Session::plain_user());
    }
}

/// Threads that wake to read Python would be samples themselves, each of which wakes them.
#[test]
fn waits_on_all_cpus_beside_python_are_not_lost() {
    if !needs(&[Need::Root, Need::Tool("python3")]) {
        return;
    }
    let session = Session::alone();
    let options = ["-a", "--call-graph", "dwarf,8192", "--off-cpu"];
    let command = ["python3", "-c", "sum(range(20_000_000))"];
    // The load of a busy machine may be too high: prof says so then.
    let mut runs = (0..10).map(|_| session.record(&options, &command));
    let whole = runs.find(|it| it.outcome.stderr.contains("no sample lost"));
    assert!(whole.is_some(), "no run without a loss");
}
