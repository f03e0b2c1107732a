//! Threads shorter than a sampling period are sampled from start to end, and the coverage shows
//! what was missed.

use std::ffi::OsString;
use std::path::Path;

use prof_tests::{Need, Outcome, Program, Recorded, Session, Stacks, assert_shares, needs};

const SHORT_THREADS: Program = Program::c(&["short_threads.c"]);
const SHARES: [(&str, f64); 3] = [("sixty", 0.6), ("thirty", 0.3), ("ten", 0.1)];

/// Weights differ, and threads born in the same moment have the same period: this many samples have
/// the precision of one independent sample.
const SAMPLES_PER_INDEPENDENT_ONE: u64 = 10;

/// 3,000 threads of 1 ms at 999 Hz.
#[track_caller]
fn check(session: &Session, event: &str) {
    check_threads(session, event, &["3000"]);
}

#[track_caller]
fn check_threads(session: &Session, event: &str, arguments: &[&str]) {
    let binary = session.install(&SHORT_THREADS.build());
    let options = ["-e", event, "-F", "999"];
    let command = [&[binary.to_str().unwrap()], arguments].concat();
    let recorded = session.record(&options, &command);
    let stacks = recorded.physical_stacks();
    let threads = stacks.with_leaves(&SHARES.map(|(name, _)| name));
    let independent = recorded.samples() / SAMPLES_PER_INDEPENDENT_ONE;
    assert_shares(&threads, independent, &SHARES);
    assert_sampled(&recorded);
    assert_covered(&recorded, stacks.total());
}

/// The coverage before correction is 99 % on average, with a standard deviation of 1 %, or 2 % if
/// the recorder has no priority.
#[track_caller]
fn assert_sampled(recorded: &Recorded<'_>) {
    let coverage = json(recorded)["quality"]["coverage"].take();
    let sampled = sum(&coverage, "sampled") as f64 / seen(&coverage) as f64;
    assert!((0.88..1.12).contains(&sampled), "{sampled} of {coverage}");
}

/// The weights in reports sum up to the kernel's count, except the part that cannot be sampled.
#[track_caller]
fn assert_covered(recorded: &Recorded<'_>, reported: u64) {
    let coverage = json(recorded)["quality"]["coverage"].take();
    let covered = reported as f64 / seen(&coverage) as f64;
    assert!((0.94..1.06).contains(&covered), "{covered} of {coverage}");
}

/// The kernel's count of the time that can be sampled.
fn seen(coverage: &serde_json::Value) -> u64 {
    sum(coverage, "used") - sum(coverage, "unseen")
}

#[test]
fn threads_of_a_millisecond_by_the_clock() {
    check(&Session::alone(), "cpu-clock:u");
}

/// With equal periods, each would be sampled four times, at the same points, and never at its end.
#[test]
fn threads_of_four_periods_and_a_half() {
    check_threads(&Session::alone(), "cpu-clock:u", &["500", "4500"]);
}

#[test]
fn threads_of_a_millisecond_by_cycles() {
    if needs(&[Need::HardwareCounters]) {
        check(&Session::alone(), "cycles");
    }
}

#[test]
fn threads_of_a_millisecond_of_a_plain_user() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user_alone();
    check(&session, "cpu-clock:u");
    if needs(&[Need::HardwareCounters]) {
        check(&session, "cycles:u");
    }
}

#[test]
fn unsampled_survivors_are_listed() {
    let session = Session::new();
    // It ends a little later than its shell.
    let survivor = "tail --pid=$$ -s 0.1 -f /dev/null >/dev/null 2>&1 &";
    let begun = "until read name </proc/$!/comm && [ $name = tail ]; do sleep 0.01; done";
    let script = format!("{survivor} {begun}");
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "99"], &["sh", "-c", &script]);
    let text = recorded.report(&["--coverage"]).stdout;
    let survivor = text.lines().find(|line| line.ends_with("  tail  tail"));
    let columns = survivor.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let threads_and_samples = columns.map(|columns| columns[2..4].join(" "));
    assert_eq!(threads_and_samples.as_deref(), Some("1 0"), "{text}");
    assert!(!text.contains('?'), "{text}");
}

#[test]
fn the_coverage_is_listed_by_name() {
    let session = Session::new();
    let binary = SHORT_THREADS.build();
    let command = [binary.to_str().unwrap(), "100", "10000"];
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "99"], &command);
    let text = recorded.report(&["--coverage"]).stdout;
    assert!(
        text.starts_with("samples cover ") && text.contains(" % of the work of 101 threads\n"),
        "{text}"
    );
    assert!(text.contains("short_threads  short_threads"), "{text}");
}

/// A child counts under two names, each of which has the work that was done under it.
#[test]
fn work_before_another_program_is_that_of_the_name_before() {
    let session = Session::new();
    let binary = Program::c(&["before_exec.c"]).build();
    let command = [binary.to_str().unwrap(), "100", "10", "/bin/true"];
    let recorded = session.record(&["-e", "cpu-clock", "-F", "999"], &command);
    let coverage = json(&recorded)["quality"]["coverage"].take();
    let names = coverage.as_array().into_iter().flatten();
    let names = names.map(|it| (it["process"].as_str(), it["threads"].as_u64()));
    let expected = [(Some("before_exec"), Some(101)), (Some("true"), Some(100))];
    assert_eq!(names.collect::<Vec<_>>(), expected, "{coverage}");
    let before = coverage[0]["used"].as_u64().unwrap() as f64;
    let share = before / sum(&coverage, "used") as f64;
    assert!((0.8..1.0).contains(&share), "{share} of {coverage}");
    let text = recorded.report(&["--coverage"]).stdout;
    assert!(text.contains(" % of the work of 101 threads\n"), "{text}");
}

/// The count of one event and the weights of another differ with each switch.
#[test]
fn frequently_switched_threads_are_counted_once() {
    let session = Session::new();
    let binary = Program::c(&["pingpong.c"]).build();
    let command = [binary.to_str().unwrap(), "40000"];
    let recorded = session.record(&["-e", "cpu-clock"], &command);
    let coverage = json(&recorded)["quality"]["coverage"].take();
    let names = coverage.as_array().into_iter().flatten();
    let names: Vec<_> = names.map(|it| it["thread"].as_str()).collect();
    assert_eq!(names, [Some("pingpong")], "{coverage}");
}

/// A shell is switched with new commands, whose first period has not ended.
#[test]
fn parents_of_short_processes_are_fully_sampled() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::alone();
    let script = "for i in $(seq 1500); do /bin/true; done";
    // A shell in between: not only the command makes processes.
    let script = format!("bash -c '{script}'; exit 0");
    let recorded = session.record(&["-e", "cpu-clock"], &["sh", "-c", &script]);
    let coverage = json(&recorded)["quality"]["coverage"].take();
    let shells = coverage.as_array().unwrap().iter();
    let shell = shells.clone().find(|one| one["process"] == "bash").unwrap();
    let [used, sampled] = ["used", "sampled"].map(|field| shell[field].as_u64().unwrap());
    let share = sampled as f64 / used as f64;
    assert!((0.75..1.25).contains(&share), "{share} of {coverage}");
}

/// With few descriptors, and many processes that create threads, files can still be opened.
#[test]
fn parents_leave_descriptors_for_others() {
    let session = Session::new();
    let script = "for i in $(seq 120); do (/bin/true; kill -STOP $BASHPID) & parents+=($!); done; \
                  for parent in ${parents[@]}; do \
                      until grep -q '(stopped)' /proc/$parent/status; do :; done; \
                  done; \
                  \"$0\" 300; kill -KILL ${parents[@]}";
    let program = Program::c(&["shares.c"]).build();
    let mut words: Vec<OsString> = ["--nofile=100:100".into(), prof_tests::prof().into()].into();
    words.extend(["record", "-e", "cpu-clock:u", "bash", "-c", script].map(OsString::from));
    words.push(program.into());
    Outcome::of(session.command(Path::new("prlimit"), words)).assert_code(0);
    let report = session.run(["report", "--no-inline", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    let burns = stacks.with_leaves(&["burn_sixty", "burn_thirty", "burn_ten"]);
    let whole = burns.share(|frames| frames.iter().any(|frame| frame == "main"));
    assert!(whole > 0.95, "{report}");
}

/// A clock also counts time that it cannot sample in user code: that is reported, not corrected.
#[test]
fn kernel_time_is_not_reported_as_short_threads() {
    let session = Session::new();
    let command = "dd if=/dev/zero of=/dev/null bs=64 count=1000000 status=none";
    let command: Vec<&str> = command.split(' ').collect();
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "1999"], &command);
    let recorded_json = json(&recorded);
    let coverage = &recorded_json["quality"]["coverage"];
    let [used, unseen, sampled] = ["used", "unseen", "sampled"].map(|field| sum(coverage, field));
    assert!(unseen > used / 4, "{coverage}");
    let all = (unseen + sampled) as f64 / used as f64;
    assert!((0.95..1.05).contains(&all), "{coverage}");
    assert_eq!(recorded_json["total"]["value"], sampled, "{coverage}");
    let text = recorded.report(&[]).stdout;
    assert!(
        text.contains("of the CPU time was in the kernel and is not shown (-e cpu-clock:u)"),
        "{text}"
    );
    assert!(!text.contains("too short"), "{text}");
}

/// The kernel mixes up the counts of several events unless only one of them is requested.
#[test]
fn the_clock_decides_coverage_among_several_events() {
    let session = Session::alone();
    let binary = SHORT_THREADS.build();
    let command = [binary.to_str().unwrap(), "40", "40000"];
    let events = "page-faults/period=1,name=faults/u,cpu-clock:u,minor-faults:u";
    let recorded = session.record(&["-e", events], &command);
    let quality = json(&recorded)["quality"].take();
    assert_eq!(quality["covered_event"], "cpu-clock:u");
    let sampled = sum(&quality["coverage"], "sampled");
    // One more if an event came in the middle of exec: the first thread then had two names.
    let threads = sum(&quality["coverage"], "threads");
    assert!((41..=42).contains(&threads), "{quality}");
    let used = sum(&quality["coverage"], "used");
    let share = sampled as f64 / used as f64;
    assert!((0.9..1.1).contains(&share), "{share} of {used}");
    // Nothing else is corrected.
    let faults = json_of(&recorded, &["--event", "faults:u"])["total"].take();
    assert_eq!(faults["value"], faults["samples"]);
}

fn json(recorded: &Recorded<'_>) -> serde_json::Value {
    json_of(recorded, &[])
}

fn json_of(recorded: &Recorded<'_>, options: &[&str]) -> serde_json::Value {
    let text = recorded
        .report(&[&["--json", "-"], options].concat())
        .stdout;
    serde_json::from_str(&text).unwrap()
}

fn sum(coverage: &serde_json::Value, field: &str) -> u64 {
    let all = coverage.as_array().unwrap();
    all.iter().map(|one| one[field].as_u64().unwrap()).sum()
}

/// A single long thread is sampled at the requested rate.
#[test]
fn long_threads_are_sampled_at_the_usual_rate() {
    let session = Session::alone();
    let binary = Program::c(&["shares.c"]).build();
    let recorded = session.record(
        &["-e", "cpu-clock:u", "-F", "500"],
        &[binary.to_str().unwrap(), "1000"],
    );
    let seconds = recorded.stacks().total() as f64 / 1e9;
    let rate = recorded.samples() as f64 / seconds;
    assert!((490.0..510.0).contains(&rate), "{rate} Hz");
}

/// Long threads are sampled at about the requested rate, also those that were born while periods
/// were short because of other threads.
#[test]
fn long_threads_among_short_ones_are_not_oversampled() {
    let session = Session::alone();
    let binary = Program::c(&["mixed_short_threads.c"]).build();
    let arguments = [binary.to_str().unwrap(), "1000", "16", "150"];
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "999"], &arguments);
    let coverage = json(&recorded)["quality"]["coverage"].take();
    println!("{coverage:?}");
    let usual = sum(&coverage, "used") as f64 * 999.0 / 1e9;
    let ratio = sum(&coverage, "samples") as f64 / usual;
    assert!((0.9..1.5).contains(&ratio), "{ratio} times the samples");
}
