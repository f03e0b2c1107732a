//! The verdict's advice improves the recording, and then is no longer given.

use prof_tests::{Compiler, Need, Program, Recorded, Session, USER_CODE, Variant, needs};

const DEEP: Program = Program::c(&["deep.c"]);
const SHARES: Program = Program::c(&["shares.c"]);
const CALLS: Program = Program::c(&["calls.c"]);
const ALLOCATIONS: Program = Program::new(&["allocations.c"], Compiler::Gcc, &["-fno-builtin"]);

/// The flags in a remedy: all of `--call-graph dwarf,65528`, and of `a higher rate (-F)` with this
/// value.
fn flags(remedy: &str, value: Option<&str>) -> Vec<String> {
    let from = remedy.find('-').unwrap_or(remedy.len());
    let flags = remedy[from..].trim_end_matches(')');
    let words = flags.split_whitespace().map(str::to_owned);
    words.chain(value.map(str::to_owned)).collect()
}

fn advice(recorded: &Recorded<'_>) -> String {
    recorded.report(&["--limit", "1"]).stdout
}

/// Records with `flags`, and then with those of the remedy instead, which the verdict prints:
/// stacks that were not whole are.
#[track_caller]
fn check_stacks(kept: &[&str], instead_of: &[&str], depth: &str, remedy: &str) {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let deep = DEEP.build();
    let command = [deep.to_str().unwrap(), depth, "500"];
    let recorded = session.record(&[kept, instead_of].concat(), &command);
    let (before, reported) = (recorded.stacks().whole_share(), advice(&recorded));
    assert!(
        before < 0.5 && reported.contains(&format!("; {remedy}")),
        "{before}: {reported}"
    );
    let flags = match remedy == "record without --no-unwind" {
        true => Vec::new(),
        false => flags(remedy, None),
    };
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let recorded = session.record(&[kept, &flags].concat(), &command);
    let (after, reported) = (recorded.stacks().whole_share(), advice(&recorded));
    assert!(
        after > 0.99 && !reported.contains(remedy),
        "{flags:?}: {after}: {reported}"
    );
}

#[test]
fn stacks_without_frame_pointers_are_whole_with_unwind_tables() {
    let remedy = "use --call-graph dwarf";
    check_stacks(&[], &["--call-graph", "fp"], "300", remedy);
}

#[test]
fn stacks_deeper_than_their_copies_are_whole_with_larger_ones() {
    let remedy = "copy more of each stack (--call-graph dwarf,65528)";
    check_stacks(
        &["--no-unwind"],
        &["--call-graph", "dwarf,4096"],
        "300",
        remedy,
    );
}

#[test]
fn copies_are_larger_in_larger_rings() {
    let remedy = "use larger ring buffers (-m 2048K)";
    check_stacks(&["--no-unwind"], &["-m", "64K"], "300", remedy);
}

#[test]
fn stacks_deeper_than_any_copy_are_whole_if_unwound_while_recording() {
    let remedy = "record without --no-unwind";
    check_stacks(&[], &["--no-unwind"], "3000", remedy);
}

/// How often a plain user's readers come late depends on what else runs.
#[test]
fn tails_of_stacks_that_change_are_read_in_time_as_root() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let missing = |session: &Session| {
        let program = session.install(&Program::c(&["alternating_callers.c"]).build());
        let command = [program.to_str().unwrap(), "500"];
        let recorded = session.record(&["-e", "cpu-clock:u", "-F", "999"], &command);
        let partial = 1.0 - recorded.stacks().whole_share();
        (partial, advice(&recorded))
    };
    let (as_user, reported) = missing(&Session::plain_user());
    let is_offered = |reported: &str| reported.contains("; record as root");
    assert!(is_offered(&reported) || as_user < 0.005, "{reported}");
    let (as_root, reported) = missing(&Session::new());
    assert!(
        as_root < as_user / 2.0 + 0.02 && !is_offered(&reported),
        "{as_user}, {as_root}: {reported}"
    );
}

#[test]
fn code_without_tables_has_whole_stacks_with_frame_pointers() {
    const NO_TABLES: &[&str] = &[
        "-g0",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let session = Session::new();
    let program = Program::c(&["shifted_stack.c"]);
    let record = |variant| {
        let command = [program.build_as(variant)];
        let recorded = session.record(USER_CODE, &command);
        (recorded.stacks().whole_share(), advice(&recorded))
    };
    let remedy = "-fno-omit-frame-pointer";
    let (before, reported) = record(Variant::new("no tables", NO_TABLES));
    assert!(
        before < 0.1 && reported.contains(remedy),
        "{before}: {reported}"
    );
    let flags = Vec::leak([NO_TABLES, &[remedy]].concat());
    let (after, reported) = record(Variant::new("frame pointers", flags));
    assert!(
        after > 0.99 && !reported.contains(remedy),
        "{after}: {reported}"
    );
}

/// Too few samples with `flags`, and enough with the remedy and `value` instead of these.
#[track_caller]
fn check_samples(kept: &[&str], flag: [&str; 2], program: &Program, remedy: &str, value: &str) {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let command = [program.build()];
    let recorded = session.record(&[kept, &flag].concat(), &command);
    let reported = advice(&recorded);
    let few = reported.contains("verdict: too few samples");
    assert!(
        few && reported.contains(&format!("or use {remedy}")),
        "{reported}"
    );
    let flags = flags(remedy, Some(value));
    assert_eq!(flags[0], flag[0], "{remedy}");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let reported = advice(&session.record(&[kept, &flags].concat(), &command));
    assert!(
        !reported.contains("too few") && !reported.contains(remedy),
        "{reported}"
    );
}

#[test]
fn a_higher_rate_yields_enough_samples() {
    check_samples(&[], ["-F", "5"], &DEEP, "a higher rate (-F)", "999");
}

#[test]
fn a_smaller_period_yields_enough_samples() {
    let remedy = "a smaller period (-c)";
    check_samples(&["-e", "page-faults"], ["-c", "500"], &CALLS, remedy, "10");
}

#[test]
fn fewer_bytes_for_a_sample_yield_enough_samples() {
    let remedy = "a smaller N (--every)";
    check_samples(
        &["--alloc"],
        ["--every", "100M"],
        &ALLOCATIONS,
        remedy,
        "4K",
    );
}

/// Samples are lost with `flag`, and none with that of the remedy and `value` instead of it. The
/// recorder, which is the shell's parent, is stopped while the program does the first part of its
/// work, on one CPU.
#[track_caller]
fn check_losses(
    kept: &[&str],
    flag: [&str; 2],
    work: (&Program, [&str; 2]),
    remedy: &str,
    value: &str,
) {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let (program, [stopped, after]) = work;
    let program = program.build();
    let script = format!(
        "cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status);
         kill -STOP $PPID; taskset -c $cpu \"$0\" {stopped}; kill -CONT $PPID; \"$0\" {after}"
    );
    let command = ["sh", "-c", &script, program.to_str().unwrap()];
    let nothing_lost = "no sample lost";
    let reported = advice(&session.record(&[kept, &flag].concat(), &command));
    assert!(
        !reported.contains(nothing_lost) && reported.contains(&format!("; use {remedy}")),
        "{reported}"
    );
    assert!(remedy.contains(flag[0]), "{remedy}");
    let reported = advice(&session.record(&[kept, &[flag[0], value]].concat(), &command));
    assert!(
        reported.contains(nothing_lost) && !reported.contains(remedy),
        "{reported}"
    );
}

/// Each fault is a sample of a whole page of stack, and a ring holds some fifteen of these.
#[test]
fn a_larger_period_loses_no_samples() {
    let work = (&CALLS, ["10000", "40000"]);
    let kept = ["-e", "page-faults", "-m", "64K"];
    check_losses(&kept, ["-c", "1"], work, "a larger period (-c)", "1000");
}

#[test]
fn a_lower_rate_loses_no_samples() {
    let work = (&SHARES, ["100", "400"]);
    let kept = ["-e", "cpu-clock:u", "-m", "64K"];
    check_losses(&kept, ["-F", "1999"], work, "a lower rate (-F)", "20");
}

/// A ring of 64 KB holds some 600 samples without stacks of the first part's 1,000 and more.
#[test]
fn larger_rings_lose_no_samples() {
    let work = (&SHARES, ["100", "1500"]);
    let kept = ["-e", "cpu-clock:u", "-F", "9999", "--call-graph", "none"];
    let remedy = "larger ring buffers (-m 4096K)";
    check_losses(&kept, ["-m", "64K"], work, remedy, "4096K");
}
