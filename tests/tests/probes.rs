//! Probes in descendants of a command, and remains of killed recorders.

use std::path::Path;

use prof_tests::{Need, Outcome, Program, Recorded, Session, USER_CODE, Variant, needs};

/// Programs that exec another one after they have had children.
const CHAINS: &str = r#"
bash -c '/bin/true; /bin/true; exec "$0" 100' "$0"
python3 -c 'import os, subprocess, sys
for _ in range(2): subprocess.run("/bin/true")
os.execv(sys.argv[1], [sys.argv[1], "100"])' "$0"
perl -e 'system("/bin/true"); system("/bin/true"); exec @ARGV' "$0" 100
printf 'all:\n\t@/bin/true; /bin/true; exec %s 100\n' "$0" > Makefile
make -s
printf '100\n100\n' | xargs -n 1 sh -c '/bin/true; exec "$0" "$1"' "$0"
sh -c 'make -s; make -s; exec "$0" 100' "$0"
printf '{"scripts": {"calls": "/bin/true; exec %s 100"}}' "$0" > package.json
npm run --silent calls
npm exec --silent --offline -c "/bin/true; exec $0 100"
true
"#;

#[test]
fn probes_reach_programs_after_exec_with_children() {
    let tools = ["bash", "python3", "perl", "make", "xargs", "npm"].map(Need::Tool);
    if !needs(&[Need::Root]) || !needs(&tools) {
        return;
    }
    let session = Session::new();
    let calls = Program::c(&["calls.c"]).build();
    let probe = format!("uprobe:{}:hit", calls.display());
    let command = ["bash", "-c", CHAINS, calls.to_str().unwrap()];
    let recorded = session.record(&["-e", &probe, "--call-graph", "none"], &command);
    assert_eq!(recorded.samples(), 1100, "{}", recorded.outcome);
    let counted = session.run([&["stat", "-x", ",", "-e", &probe, "--"], &command[..]].concat());
    counted.assert_code(0).assert_says(&["1100,"]);
}

/// The probes in tracefs, wherever it is mounted; empty if nowhere.
fn defined(session: &Session) -> String {
    let script = "mkdir -p traces && mount -t tracefs none traces && cat traces/uprobe_events";
    let command = session.command(Path::new("unshare"), ["--mount", "sh", "-c", script]);
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    outcome.stdout
}

#[test]
fn probes_of_killed_recorders_are_removed() {
    if !needs(&[Need::Root, Need::MountNamespaces]) {
        return;
    }
    let session = Session::alone();
    for next in [["record", "--", "true"], ["stat", "--", "true"]] {
        // The command kills the recorder.
        let mut prof = session.prof(["record", "--alloc", "--", "sh", "-c", "kill -KILL $PPID"]);
        let prof = prof.spawn().unwrap();
        let group = format!("prof_{}/", prof.id());
        let mut prof = prof;
        assert!(!prof.wait().unwrap().success());
        assert!(defined(&session).contains(&group));
        session.run(next).assert_code(0);
        assert!(!defined(&session).contains(&group), "{next:?}");
    }
}

#[test]
fn root_needs_no_mounted_tracefs() {
    if !needs(&[Need::Root, Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let calls = Program::c(&["calls.c"]).build();
    let script = "mount -t tmpfs none /sys/kernel && exec \"$@\"";
    let launcher = ["unshare", "--mount", "sh", "-c", script, "sh"].map(Into::into);
    let probe = format!("uprobe:{}:hit", calls.display());
    let calls = calls.to_str().unwrap();
    let words = [
        "record",
        "-e",
        &probe,
        "-e",
        "sched:sched_switch",
        "--",
        calls,
        "50",
    ];
    Outcome::of(session.prof_under(&launcher, words)).assert_code(0);
    let words = ["stat", "-x", ",", "-e", &probe, "--", calls, "50"];
    let counted = Outcome::of(session.prof_under(&launcher, words));
    counted.assert_code(0).assert_says(&["50,"]);
}

/// A stripped static program has its own allocator, without a name that could be probed.
#[test]
fn programs_that_probes_do_not_reach_are_named() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let variant = Variant::new("stripped-static", &["-static", "-s"]);
    let own = Program::c(&["calls.c"]).build_as(variant);
    let allocations = Program::c(&["allocations.c"]).build();
    let script = format!("{} 1; {} 1 200", allocations.display(), own.display());
    let recorded = session.record(&["--alloc"], &["sh", "-c", &script]);
    // Other allocators of the machine are probed, too, and named between these.
    let parts = [
        "1 program does not use the probed libc.so.6",
        ", so its allocations are not recorded: calls (ran ",
    ];
    let reported = recorded.outcome.assert_says(&parts);
    assert!(!reported.stderr.contains("verdict: good"), "{reported}");
    assert!(recorded.samples() > 0, "{reported}");
    let reported = recorded.report(&[]);
    for part in parts {
        assert!(reported.stdout.contains(part), "{reported}");
    }
}

#[test]
fn probes_without_hits_are_not_called_too_little_cpu_time() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let calls = Program::c(&["calls.c"]).build();
    let probe = format!("uprobe:{}:hit", calls.display());
    let check = |command: &[&str], why: &str| {
        let words = [&["record", "-e", &probe, "--"], command].concat();
        let outcome = session.run(words);
        outcome.assert_code(0).assert_says(&[why]);
        assert!(!outcome.stderr.contains("CPU time"), "{outcome}");
    };
    check(
        &["true"],
        "nothing was sampled: no program used the probed calls",
    );
    let calls = calls.to_str().unwrap();
    check(
        &[calls, "0", "200"],
        "nothing was sampled: no probed function was called",
    );
}

/// Records a program in which another tool has set this probe.
fn record_probed<'s>(
    session: &'s Session,
    probe: &str,
    program: &Path,
    mode: &str,
) -> Recorded<'s> {
    let probe = format!("{probe}:{}:{mode}", program.display());
    let (prof, program) = (
        session.binary().to_str().unwrap(),
        program.to_str().unwrap(),
    );
    session.record(
        USER_CODE,
        &[prof, "stat", "-e", &probe, "--", program, mode],
    )
}

/// The return address on the stack is the kernel's; its own chain of frame pointers has the true
/// one since Linux 6.11.
#[test]
fn return_probes_of_other_tools_end_no_stacks_that_keep_frame_pointers() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    let flags = &["-fno-omit-frame-pointer"];
    let program = Program::c(&["probed.c"]).build_as(Variant::new("frame-pointers", flags));
    let recorded = record_probed(&session, "uretprobe", &program, "probed");
    if version >= (6, 11) {
        let stacks = recorded.physical_stacks();
        let path = ["main", "probed", "work"].map(String::from);
        let share = stacks.share(|frames| frames.ends_with(&path));
        assert!(share > 0.8, "{share}: {stacks}");
        stacks.assert_whole(0.95);
    }
    let program = Program::c(&["probed.c"]).build();
    let recorded = record_probed(&session, "uretprobe", &program, "probed");
    recorded
        .outcome
        .assert_says(&["a tool has set a return probe there"]);
    assert!(
        !recorded.outcome.stderr.contains("report this bug"),
        "{}",
        recorded.outcome
    );
}

#[test]
fn copies_of_probed_instructions_are_no_code_made_at_run_time() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let program = Program::c(&["probed.c"]).build();
    let recorded = record_probed(&session, "uprobe", &program, "tiny");
    let stacks = recorded.physical_stacks();
    let last = |name: &str| stacks.share(|frames| frames.last().is_some_and(|last| last == name));
    assert!(last("tiny") > 0.2, "{stacks}");
    assert!(last("[jit]") < 0.01 && last("[uprobes]") < 0.05, "{stacks}");
}
