//! Programs that people have: a shell pipeline, python3, gcc, sqlite3, rustc.

use std::path::Path;
use std::process::Command;

use prof_tests::{Need, Program, Recorded, Session, Stacks, USER_CODE, copy_executable, needs};

/// Real programs hold assembly and code without tables; a little may end early, with its reason.
const WHOLE: f64 = 0.995;

#[track_caller]
fn check(options: &[&str], command: &[&str], processes: &[&str], functions: &[&str]) -> Stacks {
    let session = Session::new();
    let recorded = session.record(options, command);
    let stacks = recorded.stacks();
    // Compilers' stacks may be deeper than dumps, and change fast.
    let whole = if processes == ["rustc"] { 0.95 } else { WHOLE };
    stacks.assert_whole(whole);
    for process in processes {
        assert!(
            stacks.processes().contains(process),
            "no {process}: {:?}",
            stacks.processes()
        );
    }
    for function in functions {
        let share = stacks.share(|frames| frames.iter().any(|frame| frame.contains(function)));
        assert!(share > 0.05, "{share} in {function}:\n{stacks}");
    }
    stacks
}

#[test]
fn a_shell_pipeline() {
    let pipeline = "seq 1 3000000 | LC_ALL=C sort -r | tr 0-9 a-j | md5sum";
    check(
        USER_CODE,
        &["sh", "-c", pipeline],
        &["sort", "md5sum", "tr"],
        &[],
    );
}

#[test]
fn python() {
    if !needs(&[Need::Tool("/usr/bin/python3")]) {
        return;
    }
    let code = "
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(31)
print(sorted(str(i) for i in range(100000))[0])
";
    let functions = &["fib"];
    check(
        USER_CODE,
        &["/usr/bin/python3", "-c", code],
        &["python3"],
        functions,
    );
}

#[test]
fn gcc() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/inlining.cpp");
    let command = [
        "g++",
        "-O2",
        "-std=gnu++17",
        "-c",
        source,
        "-o",
        "inlining.o",
    ];
    check(USER_CODE, &command, &["cc1plus"], &[]);
}

#[test]
fn sqlite() {
    if !needs(&[Need::Tool("sqlite3")]) {
        return;
    }
    let query = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)
                 select sum(length(hex(i))), count(distinct i % 1000) from n";
    check(
        USER_CODE,
        &["sqlite3", ":memory:", query],
        &["sqlite3"],
        &[],
    );
}

#[test]
fn rustc() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/generics.rs");
    let command = ["rustc", "--edition=2024", "-O", "-o", "generics", source];
    check(USER_CODE, &command, &["rustc"], &["rustc_driver"]);
}

/// Builds a Go program of ours as `binary`, with these options and environment.
fn build_go(binary: &Path, source: &str, options: &[&str], variables: &[(&str, &str)]) {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let built = Command::new("go")
        .arg("build")
        .args(options)
        .arg("-o")
        .arg(binary)
        .arg(programs.join(source))
        .env("GO111MODULE", "off")
        .env("GOCACHE", std::env::temp_dir().join("prof-tests-go"))
        .envs(variables.iter().copied())
        .status();
    assert!(built.expect("go runs").success());
}

/// C that Go calls runs on another stack. The kernel's chain leads back, if C has frame pointers.
#[test]
fn go_that_calls_c() {
    if !needs(&[Need::Tool("go"), Need::Tool("gcc")]) {
        return;
    }
    let session = Session::new();
    for (name, flags) in [("plain", "-O2"), ("linked", "-O2 -fno-omit-frame-pointer")] {
        let binary = session.path(name);
        build_go(&binary, "cgo.go", &[], &[("CGO_CFLAGS", flags)]);
        let recorded = session.record(&["-e", "cpu-clock:u"], &[&binary]);
        let stacks = recorded.physical_stacks();
        let whole = stacks.share(|frames| frames.iter().any(|frame| frame == "main.callC"));
        if name == "plain" {
            let said = [
                "C code called from Go",
                "(CGO_CFLAGS=-fno-omit-frame-pointer)",
            ];
            recorded.outcome.assert_says(&said);
            assert!(
                !recorded.outcome.stderr.contains("-fasynchronous"),
                "{}",
                recorded.outcome
            );
        } else {
            assert!(whole > 0.95, "{whole}:\n{stacks}");
        }
    }
}

/// The C library keeps no frame pointers, whatever the flags for C are. `asmcgocall` itself moves
/// to another stack; and C starts such programs, by a function of Go whose CFI is wrong.
#[test]
fn go_that_calls_the_c_library() {
    if !needs(&[Need::Tool("go"), Need::Tool("gcc")]) {
        return;
    }
    let session = Session::new();
    let binary = session.path("library");
    let flags = "-O2 -fno-omit-frame-pointer";
    build_go(&binary, "cgo_library.go", &[], &[("CGO_CFLAGS", flags)]);
    let recorded = session.record(&["-e", "cpu-clock:u"], &[&binary]);
    let verdict = &recorded.outcome.stderr;
    assert!(!verdict.contains("CGO_CFLAGS"), "{verdict}");
    let calls = recorded.physical_stacks();
    let calls = calls.with_leaves(&["runtime.asmcgocall.abi0"]);
    let whole = calls.share(|frames| frames[0].starts_with("runtime.goexit"));
    assert!(whole > 0.95, "{whole}:\n{calls}");
    let faults = session.record(&["-e", "page-faults:u", "-c", "1"], &[&binary]);
    let faults = faults.physical_stacks();
    let is_start = |frame: &String| frame.starts_with("runtime.rt0_go");
    let started = faults.share(|frames| frames.iter().any(is_start));
    let lost = faults.share(|frames| {
        let start = frames.iter().position(is_start);
        start.is_some_and(|start| frames.get(..start).is_none_or(|it| it.len() < 3))
    });
    assert!(started > 0.05 && lost == 0.0, "{started} {lost}:\n{faults}");
}

/// A copy of an ELF program without section headers.
fn without_sections(session: &Session, from: &Path, to: &Path) {
    let mut bytes = std::fs::read(from).unwrap();
    // `e_shoff`, `e_shnum` and `e_shstrndx`
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    copy_executable(&session.write("bytes", &bytes), to);
}

/// Go moves to other stacks to allocate and to collect garbage. Stripped, it has no CFI, and its
/// functions have their names by Go's own tables.
#[test]
fn go() {
    if !needs(&[Need::Tool("go")]) {
        return;
    }
    let session = Session::new();
    for name in ["plain", "stripped", "bare"] {
        let binary = session.path(name);
        match name {
            "plain" => build_go(&binary, "goroutines.go", &[], &[]),
            "stripped" => build_go(&binary, "goroutines.go", &["-ldflags", "-s -w"], &[]),
            _ => without_sections(&session, &session.path("stripped"), &binary),
        }
        // Stopped threads are in system calls, too, and at the begin of signal handlers.
        let stopped = session.record(&["--sampler", "ptrace"], &[&binary]);
        // Other stacks than the current one are read while the program goes on.
        let changed = "the first one changed before it could be read";
        let stacks = stopped.physical_stacks();
        let late = stacks.share(|frames| frames.iter().any(|frame| frame.contains(changed)));
        assert!(late < 0.2, "{late}:\n{stacks}");
        assert_whole(&stopped, 94.0 - late * 100.0);
        let recorded = session.record(&["-e", "cpu-clock:u"], &[&binary]);
        assert_whole(&recorded, 99.0);
        let stacks = recorded.physical_stacks();
        let worked = stacks.share(|frames| frames.iter().any(|frame| frame == "main.work"));
        assert!(worked > 0.3, "{worked}:\n{stacks}");
        let entries = ["goexit", "mcall", "rt0_go", "mstart", "clone"];
        let entered = stacks.share(|frames| entries.iter().any(|entry| frames[0].contains(entry)));
        assert!(entered > 0.99, "{entered}:\n{stacks}");
        let collects = stacks.share(|frames| {
            frames.iter().any(|frame| frame.contains("systemstack")) && frames[0].contains("goexit")
        });
        assert!(collects > 0.02, "{collects}:\n{stacks}");
        if name != "plain" {
            // New stacks and new heap are touched first in the code that asks for them: one fault
            // in a thousand.
            let faults = session.record(&["-e", "page-faults", "-c", "1"], &[&binary]);
            let advice = faults.report(&["--limit", "1"]);
            let go = advice.stdout.contains("build it without -ldflags=-s or -w");
            assert!(go && !advice.stdout.contains("-fasynchronous"), "{advice}");
        }
    }
}

/// Go keeps frame pointers, except in functions without a frame, and its CFI does not say so.
#[test]
fn frame_pointers_of_go() {
    if !needs(&[Need::Tool("go")]) {
        return;
    }
    let session = Session::new();
    let binary = session.path("frames");
    build_go(&binary, "goroutines.go", &[], &[]);
    let recorded = session.record(&["-e", "cpu-clock:u", "--call-graph", "fp"], &[&binary]);
    assert_whole(&recorded, 50.0);
    let stacks = recorded.physical_stacks();
    let is_left_out = |frame: &String| frame.contains("one frame left out");
    let left_out = stacks.share(|frames| frames.iter().any(is_left_out));
    assert!(left_out > 0.02 && left_out < 0.5, "{left_out}:\n{stacks}");
    let without_frame = stacks.with_leaves(&["runtime.memclrNoHeapPointers"]);
    let marked = without_frame.share(|frames| frames.iter().any(is_left_out));
    assert!(marked > 0.9, "{without_frame}");
}

/// Go asks the vDSO for the time on another stack.
#[test]
fn go_asks_for_the_time() {
    if !needs(&[Need::Tool("go")]) {
        return;
    }
    let session = Session::new();
    let binary = session.path("clocks");
    build_go(&binary, "clocks.go", &[], &[]);
    let recorded = session.record(&["-e", "cpu-clock:u"], &[&binary]);
    assert_whole(&recorded, 95.0);
    let stacks = recorded.physical_stacks();
    let called = stacks.share(|frames| frames.iter().any(|frame| frame == "main.untilLater"));
    assert!(called > 0.95, "{called}:\n{stacks}");
}

#[track_caller]
fn assert_whole(recorded: &Recorded<'_>, percent: f64) {
    let verdict = &recorded.outcome.stderr;
    let whole = verdict.split_once(" % of ").map(|(before, _)| before);
    let whole = whole.and_then(|before| before.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(whole.is_some_and(|whole| whole >= percent), "{verdict}");
}

/// prof is a large Rust program with debug info. Of its some eighty samples a few are in the moment
/// in which it reads its flags, unoptimized, with more stack than any copy holds: where the reader
/// has to wait for a CPU, one or two of these may have changed.
#[test]
fn prof_itself() {
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[Program::c(&["threads.c"]).build()]);
    let prof = prof_tests::prof().to_str().unwrap();
    let input = recorded.file.to_str().unwrap();
    let again = ["-e", "cpu-clock:u", "-F", "1999", "-o", "again.data"];
    let recorded = session.record(&again, &[prof, "report", "-i", input, "--folded", "f"]);
    let stacks = recorded.stacks();
    stacks.assert_whole(0.97);
    let share = stacks.share(|frames| frames.iter().any(|frame| frame.contains("prof_")));
    assert!(share > 0.5, "{share}:\n{stacks}");
}
