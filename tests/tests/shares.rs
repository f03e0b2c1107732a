//! Shares of self time are right, as far as statistics can tell.
#![forbid(unsafe_code)]

use prof_tests::{Program, Session, assert_shares};

/// Weights are nanoseconds of the clock: one sample weighs about one period.
const HERTZ: u64 = 1999;

fn samples(stacks: &prof_tests::Stacks) -> u64 {
    stacks.total() / (1_000_000_000 / HERTZ)
}

#[test]
fn sixty_thirty_ten() {
    let session = Session::new();
    let binary = Program::c(&["shares.c"]).build();
    let command = [binary.to_str().unwrap(), "2000"];
    let stacks = session.record(&["-F", "1999"], &command).stacks();
    let stacks = stacks.with_leaves(&["burn_sixty", "burn_thirty", "burn_ten"]);
    let samples = samples(&stacks);
    assert!(samples > 1500, "only {samples} samples");
    let expected = [("burn_sixty", 0.6), ("burn_thirty", 0.3), ("burn_ten", 0.1)];
    assert_shares(&stacks, samples, &expected);
}

#[test]
fn the_sum_of_the_weights_is_the_cpu_time() {
    let session = Session::alone();
    let binary = Program::c(&["deep.c"]).build();
    let mut time = std::process::Command::new("/bin/sh");
    time.args(["-c", "\"$0\" 10 1000 >&2; times"]).arg(&binary);
    let measured = children_seconds(&prof_tests::Outcome::of(time).stdout);
    let command = [binary.to_str().unwrap(), "10", "1000"];
    let recorded = session.record(&[], &command).stacks().total() as f64 / 1e9;
    let ratio = recorded / measured;
    assert!(
        (0.9..1.1).contains(&ratio),
        "{recorded} s recorded, {measured} s used"
    );
}

/// The second line of what a shell's `times` prints: user and system time of its children.
fn children_seconds(times: &str) -> f64 {
    let line = times.lines().nth(1).unwrap_or_default();
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    line.split_whitespace().map(seconds).sum()
}
