//! Time off the CPUs: as long as the waiting program's own clock says, where it waits.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use prof_tests::{Need, Program, Recorded, Session, Stacks, needs};

/// What the program measured: function and nanoseconds.
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
/// there is little but, on a busy machine, other programs' turns.
#[track_caller]
fn assert_waits(stacks: &Stacks, clock: &BTreeMap<String, u64>, tolerance: f64) {
    for function in ["sleeps", "locks", "reads"] {
        let (found, measured) = (time_in(stacks, &[function]), clock[function]);
        let ratio = found as f64 / measured as f64;
        assert!(
            (1.0 - tolerance..1.01).contains(&ratio),
            "{function}: {found} ns recorded, {measured} ns by its own clock"
        );
    }
}

#[test]
fn waits_are_where_and_as_long_as_the_program_says() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::alone();
    let binary = Program::c(&["waiting.c"]).build();
    let recorded = session.record(&["--off-cpu"], &[binary]);
    recorded.outcome.assert_says(&["verdict: good"]);
    let stacks = recorded.physical_stacks();
    assert_waits(&stacks, &own_clock(&recorded), 0.05);
    assert_eq!(time_in(&stacks, &["computes"]), 0);
    stacks.assert_whole(0.99);
}

#[test]
fn all_time_is_in_one_view_with_two_roots() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::alone();
    let binary = Program::c(&["waiting.c"]).build();
    let recorded = session.record(&["--wall"], &[binary]);
    let stacks = recorded.physical_stacks();
    let clock = own_clock(&recorded);
    assert_waits(&stacks, &clock, 0.05);
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
}
