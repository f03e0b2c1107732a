//! Machines whose clocks are wrong, or that record over midnight.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use prof_needs::tools;
use prof_perfdata::{
    AttrFlags, ClockData, EventDescription, Features, Recording, SampleType, Writer,
};

use super::data_set::{Session, sum};
use super::server::Server;
use super::{errors, fleet, weights};

/// A copy of a recording with its first sample this long after 1970.
fn recorded_at(recording: &Path, first: Duration) -> PathBuf {
    let mut opened = Recording::open(recording).unwrap();
    let clock = opened.features().clock.unwrap();
    let time = loop {
        match opened.next().unwrap() {
            prof_perfdata::Record::Sample(sample) => break sample.time.unwrap(),
            _ => continue,
        }
    };
    let wall_clock = u64::try_from(first.as_nanos()).unwrap() + clock.clock - time;
    let mut bytes = fs::read(recording).unwrap();
    let known = clock.wall_clock.to_le_bytes();
    let at = bytes
        .windows(8)
        .rposition(|window| window == known)
        .unwrap();
    bytes[at..at + 8].copy_from_slice(&wall_clock.to_le_bytes());
    let copy = recording.with_extension(first.as_secs().to_string());
    fs::write(&copy, bytes).unwrap();
    copy
}

#[test]
fn each_machine_has_the_days_of_its_own_clock() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    let whole = weights(&recording);
    // Noon of a day, on machines whose clocks are a day behind and a year ahead.
    let noon = Duration::from_secs(20_000 * 86_400 + 43_200);
    let day = Duration::from_secs(86_400);
    for (host, clock) in [
        ("right", noon),
        ("behind", noon - day),
        ("ahead", noon + 365 * day),
    ] {
        session.pushed(&recorded_at(&recording, clock), host);
    }
    let twice = sum(&whole, &whole);
    assert_eq!(session.query(&[]), sum(&twice, &whole));
    assert_eq!(session.query(&["--host", "ahead"]), whole);
    let right = ["--since", "2024-10-04", "--until", "2024-10-05"];
    assert_eq!(session.query(&right), whole);
    assert_eq!(session.query(&["--until", "2024-10-05"]), twice);
    assert_eq!(session.data("check").0, Some(0));
    assert_eq!(session.files("runs").len(), 3);
}

#[test]
fn the_clock_of_a_recording_counts_and_not_a_stated_time() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    let noon = Duration::from_secs(20_000 * 86_400 + 43_200);
    let recording = recorded_at(&recording, noon);
    let push = |time: &str| {
        let mut push = fleet();
        push.args(["push", "--time", time]).arg(&recording);
        let pushed = push.arg(session.path("data")).output().unwrap();
        assert!(pushed.status.success(), "{}", errors(&pushed));
        errors(&pushed)
    };
    let said = push("2020-01-01");
    let expected = "says itself when it was recorded: --time is ignored\n";
    assert!(said.contains(expected), "{said}");
    let days = session.files("runs");
    let path = days[0].to_str().unwrap();
    assert!(path.contains("date=2024-10-04"), "{path}");
    // It is no other recording by that.
    assert!(push("2021-01-01").contains("was pushed before"));
}

#[test]
fn a_recording_over_midnight_is_of_two_days() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    // The work takes longer than that.
    let clock = Duration::from_secs(20_000 * 86_400) - Duration::from_millis(20);
    session.pushed(&recorded_at(&recording, clock), "a");
    let (before, after) = (
        session.query(&["--until", "2024-10-04"]),
        session.query(&["--since", "2024-10-04"]),
    );
    assert_eq!(sum(&before, &after), weights(&recording));
    // Each day has the stacks of its samples.
    assert!(before.contains_key("parse") && after.contains_key("render"));
    assert_eq!(session.files("stacks").len(), 2);
    assert_eq!(session.data("check").0, Some(0));
}

#[test]
fn half_of_a_recording_is_reported_once_no_push_can_be_under_way() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let clock = Duration::from_secs(20_000 * 86_400) - Duration::from_millis(20);
    let recording = recorded_at(&session.record("recording"), clock);
    session.pushed(&recording, "a");
    let whole = session.query(&[]);
    // As a push leaves it that was killed after the first day.
    let is_of_first_day = |path: &Path| path.to_string_lossy().contains("date=2024-10-03");
    let days = ["samples", "stacks"].map(|table| session.files(table));
    for file in days.concat().iter().filter(|path| !is_of_first_day(path)) {
        fs::remove_file(file).unwrap();
    }
    fs::remove_file(&session.files("runs")[0]).unwrap();
    let (status, text) = session.data("check");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("1 file of recordings whose push"), "{text}");
    let file = &session.files("samples")[0];
    let file = File::options().append(true).open(file).unwrap();
    let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    file.set_modified(hours_ago).unwrap();
    let (status, text) = session.data("check");
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("not pushed completely"), "{text}");
    session.pushed(&recording, "a");
    assert_eq!(session.query(&[]), whole);
    assert_eq!(session.data("check").0, Some(0));
}

#[test]
fn stacks_that_one_push_brought_are_not_brought_again() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    let noon = Duration::from_secs(20_000 * 86_400 + 43_200);
    let minute = Duration::from_secs(60);
    let day = Duration::from_secs(86_400);
    let times = [noon, noon + minute, noon + day];
    let recordings = times.map(|time| recorded_at(&recording, time));
    session.all_pushed(&recordings, "a");
    // One of each day.
    assert_eq!(session.files("stacks").len(), 2);
    let whole = weights(&recording);
    assert_eq!(session.query(&[]), sum(&sum(&whole, &whole), &whole));
    let next_day = ["--since", "2024-10-05"];
    assert_eq!(session.query(&next_day), whole);
    assert_eq!(session.data("check").0, Some(0));
}

#[test]
fn a_recording_without_samples_has_the_day_it_was_made() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let noon = Duration::from_secs(20_000 * 86_400 + 43_200);
    session.pushed(&without_samples(&session, noon), "idle");
    let runs = session.files("runs");
    let folder = session.path("data/runs/date=2024-10-04/service=shop/host=idle");
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].parent(), Some(&*folder), "{runs:?}");
}

#[test]
fn nothing_of_a_recording_without_samples_is_sent() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = without_samples(&session, Duration::from_secs(20_000 * 86_400));
    for receiver in ["pyroscope", "otlp"] {
        let server = Server::answering(&[]);
        let mut push = fleet();
        push.arg("push").arg(&recording);
        push.arg(format!("{receiver}+http://{}", server.address));
        let pushed = push.output().unwrap();
        assert!(pushed.status.success(), "{}", errors(&pushed));
        let expected = "idle has no samples: nothing was sent\n";
        assert!(errors(&pushed).ends_with(expected), "{}", errors(&pushed));
        assert!(server.rest().is_empty());
    }
}

/// A recording that was made at this time, thirty days after the machine started.
fn without_samples(session: &Session, time: Duration) -> PathBuf {
    let recording = session.path("idle");
    let mut event = EventDescription {
        name: "cpu-clock".into(),
        ids: vec![1],
        ..EventDescription::default()
    };
    event.attr.kind = 1;
    event.attr.sample_type = SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME;
    event.attr.flags = AttrFlags::SAMPLE_ID_ALL;
    let writer = Writer::create(File::create(&recording).unwrap(), &[event]).unwrap();
    let clock = ClockData {
        clockid: 1,
        wall_clock: time.as_nanos() as u64,
        clock: 30 * 86_400 * 1_000_000_000,
    };
    let features = Features {
        clock: Some(clock),
        ..Features::default()
    };
    writer.finish(&features).unwrap();
    recording
}
