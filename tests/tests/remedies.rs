//! What the verdict advises makes the recording better, and is not advised then.

use prof_tests::{Compiler, Need, Program, Recorded, Session, needs};

const DEEP: Program = Program::c(&["deep.c"]);
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
    let command = [deep.to_str().unwrap(), depth, "1000"];
    let recorded = session.record(&[kept, instead_of].concat(), &command);
    let (before, reported) = (recorded.stacks().whole_share(), advice(&recorded));
    assert!(
        before < 0.5 && reported.contains(&format!("; {remedy}")),
        "{before}: {reported}"
    );
    let flags = match remedy.ends_with("leave out --no-unwind") {
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
    let remedy = "record with prof, and leave out --no-unwind";
    check_stacks(&[], &["--no-unwind"], "3000", remedy);
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
    let remedy = "more samples (a smaller N with --every)";
    check_samples(
        &["--alloc"],
        ["--every", "100M"],
        &ALLOCATIONS,
        remedy,
        "4K",
    );
}

#[test]
fn a_larger_period_loses_no_samples() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let calls = CALLS.build();
    // Each fault is a sample of a whole page of stack, and a ring holds some fifteen of these while
    // the recorder, which is the shell's parent, is stopped.
    let script = "kill -STOP $PPID; \"$0\" 10000; kill -CONT $PPID; \"$0\" 40000";
    let record = |period| {
        let options = ["-e", "page-faults", "-c", period, "-m", "64K"];
        let recorded = session.record(&options, &["sh", "-c", script, calls.to_str().unwrap()]);
        advice(&recorded)
    };
    let remedy = "; use a larger period (-c)";
    let reported = record("1");
    let nothing_lost = "no sample lost";
    assert!(
        !reported.contains(nothing_lost) && reported.contains(remedy),
        "{reported}"
    );
    let reported = record("1000");
    assert!(
        reported.contains(nothing_lost) && !reported.contains(remedy),
        "{reported}"
    );
}
