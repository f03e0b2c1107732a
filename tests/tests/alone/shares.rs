//! Shares of self time are right, within the statistical error.

use prof_tests::{Program, Session, assert_shares};

const EXPECTED: [(&str, f64); 3] = [("burn_sixty", 0.6), ("burn_thirty", 0.3), ("burn_ten", 0.1)];

#[track_caller]
fn check(options: &[&str]) {
    let session = Session::new();
    let binary = Program::c(&["shares.c"]).build();
    let recorded = session.record(options, &[binary.to_str().unwrap(), "1000"]);
    let samples = recorded.samples();
    assert!(samples > 700, "only {samples} samples");
    let stacks = recorded.physical_stacks();
    assert_shares(
        &stacks.with_leaves(&EXPECTED.map(|(name, _)| name)),
        samples,
        &EXPECTED,
    );
}

#[test]
fn by_cpu_time() {
    check(&["-e", "cpu-clock", "-F", "1999"]);
}

/// cycles on real machines with hardware counters.
#[test]
fn by_the_default_event() {
    check(&["-F", "1999"]);
}

#[test]
fn by_period() {
    check(&["-e", "task-clock:u", "-c", "500000"]);
}

#[test]
fn the_sum_of_the_weights_is_the_cpu_time() {
    let session = Session::alone();
    let binary = Program::c(&["deep.c"]).build();
    // The shell has the kernel's count of the same run.
    let script = "\"$0\" 10 1000 >&2; times";
    let command = ["sh", "-c", script, binary.to_str().unwrap()];
    let recorded = session.record(&["-e", "cpu-clock"], &command);
    let measured = seconds(&recorded.outcome.stdout);
    let recorded = recorded.stacks().total() as f64 / 1e9;
    let ratio = recorded / measured;
    assert!(
        (0.95..1.05).contains(&ratio),
        "{recorded} s recorded, {measured} s used"
    );
}

/// Parses the output of a shell's `times`: its own user and system time, and those of its children.
fn seconds(times: &str) -> f64 {
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    times.split_whitespace().map(seconds).sum()
}
