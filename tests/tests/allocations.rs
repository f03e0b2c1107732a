//! Allocations of known programs, in known bytes.

use std::process::{Command, Stdio};

use prof_tests::{Compiler, Need, Outcome, Program, Session, Stacks, needs};

/// The compiler must not know the callees, or it could leave them out.
const PROGRAM: Program = Program::new(&["allocations.c"], Compiler::Gcc, &["-fno-builtin"]);

/// The bytes and calls that each function of the program requests with the argument 10. A call of
/// `realloc` without memory is one of `malloc`.
const EXPECTED: [(&str, u64, u64); 6] = [
    ("mallocs", 100_000, 100),
    ("callocs", 70_000, 100),
    ("reallocs", 50 * 20_100, 100),
    ("aligneds", 50 * (640 + 128), 100),
    ("huges", 10 * (64 << 20), 10),
    ("maps", 20 * 8192, 20),
];

fn weight_of(stacks: &Stacks, function: &str) -> u64 {
    let has = |stack: &[String]| stack.iter().any(|frame| frame == function);
    let fitting = stacks.iter().filter(|(stack, _)| has(stack));
    fitting.map(|(_, weight)| weight).sum()
}

/// Records with these options; each function's weight is off by so much at most.
fn check(options: &[&str], expected: impl Fn(u64, u64) -> u64, tolerance: u64) {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = PROGRAM.build();
    let recorded = session.record(options, &[binary]);
    let stacks = recorded.physical_stacks();
    for (function, bytes, calls) in EXPECTED {
        let (found, expected) = (weight_of(&stacks, function), expected(bytes, calls));
        assert!(
            found.abs_diff(expected) <= tolerance,
            "{options:?} {function}: {found}, not {expected}"
        );
    }
    stacks.assert_whole(1.0);
}

#[test]
fn each_byte_is_counted_once() {
    check(&["--alloc"], |bytes, _| bytes, 0);
}

#[test]
fn each_call_is_counted_once() {
    check(&["--alloc=calls"], |_, calls| calls, 0);
}

/// Of 301 allocations, one has most of the bytes and no whole stack.
#[test]
fn a_large_allocation_without_a_whole_stack_is_not_good() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["unequal.c"]).build();
    let command = [binary.to_str().unwrap(), "1000000", "1"];
    let recorded = session.record(&["--alloc"], &command);
    let words = [
        "verdict: BAD: 99.",
        " % of the allocated memory is in whole stacks",
    ];
    recorded.outcome.assert_says(&words);
}

/// Each function of the allocator counts to seven separately. A prime, so that it is not in step
/// with the program's cycles.
#[test]
fn each_seventh_call_stands_for_seven() {
    check(&["--alloc=calls", "--every", "7"], |_, calls| calls, 14);
}

#[test]
fn samples_each_so_many_bytes_add_up() {
    check(&["--alloc", "--every", "4K"], |bytes, _| bytes, 4096);
}

/// 671 MB with a sample for each 100 MB: not each call is sampled.
#[test]
fn few_of_many_bytes_are_too_few_samples() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let recorded = session.record(&["--alloc", "--every", "100M"], &[PROGRAM.build()]);
    recorded.outcome.assert_says(&["verdict: too few samples"]);
}

/// Threads and processes of the target inherit the probes, which must not prevent their creation.
#[test]
fn children_live_and_are_counted() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = PROGRAM.build();
    let twice = format!("{0} && {0} && echo both", binary.display());
    let recorded = session.record(&["--alloc"], &["sh", "-c", &twice]);
    assert!(
        recorded.outcome.stdout.ends_with("both\n"),
        "{}",
        recorded.outcome
    );
    let stacks = recorded.physical_stacks();
    for (function, bytes, _) in EXPECTED {
        assert_eq!(weight_of(&stacks, function), 2 * bytes, "{function}");
    }
    let defined = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    let ours = format!("{}", recorded.outcome);
    assert!(
        !defined.contains(binary.to_str().unwrap()),
        "{defined}\n{ours}"
    );
}

#[test]
fn probed_threads_can_be_made() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["threads.c"]).build();
    let command = [binary.as_os_str(), std::ffi::OsStr::new("10")];
    let recorded = session.record(&["--alloc=calls"], &command);
    recorded.outcome.assert_code(0);
    assert!(recorded.samples() > 0);
}

#[test]
fn the_unit_is_bytes() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = PROGRAM.build();
    let recorded = session.record(&["--alloc", "--flamegraph", "out.svg"], &[binary]);
    let svg = std::fs::read_to_string(session.path("out.svg")).unwrap();
    assert!(svg.contains("bytes"), "{}", recorded.outcome);
}

#[test]
fn plain_users_get_alternatives() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let outcome = session.run(["record", "--alloc", "--", "echo", "started"]);
    outcome.assert_refused(&["need root", "CAP_SYS_ADMIN", "page-faults"]);
    assert_eq!(outcome.stdout, "");
}

/// If samples are lost, the remedy is to sample fewer allocations; the rate is irrelevant.
#[test]
fn too_many_allocations_have_a_remedy() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    // The recorder is stopped meanwhile, so that its buffers are full.
    let script = "kill -STOP $PPID; \"$0\"; kill -CONT $PPID";
    let binary = PROGRAM.build();
    let command = ["sh", "-c", script, binary.to_str().unwrap()];
    let check = |options: &[&str], remedy: &str| {
        let recorded = session.record(&[options, &["-m", "64K"]].concat(), &command);
        let reported = recorded
            .outcome
            .assert_says(&["ring buffers were full", remedy]);
        assert!(!reported.stderr.contains("(-F)"), "{reported}");
        let reported = recorded.report(&[]).stdout;
        assert!(reported.contains(remedy), "{reported}");
    };
    check(&["--alloc"], "use --every N, or a larger N");
    check(&["-e", "page-faults:u", "-c", "1"], "a larger period (-c)");
}

/// The recorder allocates, too: to record that would be to allocate more.
#[test]
fn all_that_runs_is_recorded_but_for_the_recorder() {
    if !needs(&[Need::Root, Need::Tool("perf")]) {
        return;
    }
    let session = Session::alone();
    // Others may allocate more than can be recorded, so that the program's few are lost.
    let is_seen = (0..10).any(|_| is_seen_beside_the_recorder(&session));
    assert!(is_seen, "the program is never seen");
}

/// Whether a recording of all that runs shows the program; it must not show the recorder.
fn is_seen_beside_the_recorder(session: &Session) -> bool {
    let options = ["record", "-a", "--alloc", "--call-graph", "dwarf,8192"];
    let mut command = session.prof(options);
    command.arg("--").arg(PROGRAM.build());
    let prof = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let prof = prof.unwrap();
    let own = prof.id().to_string();
    let outcome = Outcome::new(&command, prof.wait_with_output().unwrap());
    outcome.assert_code(0);
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "pid,comm", "-i"]);
    perf.arg(session.path("prof.data"));
    let samples = Outcome::of(perf);
    let mut lines = samples.stdout.lines();
    assert!(
        !(lines.clone()).any(|line| line.split_whitespace().any(|word| word == own)),
        "{outcome}"
    );
    lines.any(|line| line.contains("allocations"))
}
