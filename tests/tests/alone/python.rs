//! Python functions in the stacks of samples, where other load would matter.

use prof_tests::{Need, Recorded, Session, needs};
use serde_json::Value;

use crate::python::{
    NEEDS, ONE_THREAD, SYSTEM, THREE_THREADS, Way, check, install_pairs, known_callers, system,
};

/// The reader has no priority: threads that take turns go on before it runs, and more of them at
/// higher rates.
#[test]
fn plain_users_see_the_same() {
    let Some(python) = system().filter(|_| needs(NEEDS)) else {
        return;
    };
    for (calls, way, at_least) in [("80000", ONE_THREAD, 0.9), ("60000", THREE_THREADS, 0.7)] {
        let rate = "999";
        let way = Way { rate, calls, ..way };
        check(&Session::plain_user_alone(), python, &way, at_least);
    }
}

/// Context switches are sampled, too, and the threads that read the frames cause some.
fn check_with_waits(session: &Session, options: &[&str], at_least: f64) {
    let python = system().expect("an interpreter");
    install_pairs(session, python);
    let program = session.path("python_pairs.py");
    let command = [SYSTEM, program.to_str().expect("UTF-8"), "80000", "0"];
    let stacks = session.record(options, &command).stacks();
    let known = known_callers(&stacks, python);
    assert!(known >= at_least, "{options:?}: {known}\n{stacks}");
}

#[test]
fn callers_are_known_beside_waits() {
    if needs(&[&[Need::Root], NEEDS].concat()) && system().is_some() {
        check_with_waits(&Session::alone(), &["--wall"], 0.9);
        check_with_waits(
            &Session::alone(),
            &["-e", "cpu-clock,context-switches"],
            0.9,
        );
    }
}

/// Each record wakes the reader of the rings as well as those of the frames.
#[test]
fn plain_users_know_callers_beside_waits() {
    if needs(&[&[Need::PlainSampling], NEEDS].concat()) && system().is_some() {
        check_with_waits(&Session::plain_user_alone(), &["--wall"], 0.8);
    }
}

const BUILDING: &str = "
import os
def build():
    return {str(i): [i, str(i), {'a': 2 * i, 'b': [3] * 3}] for i in range(50)}
def use():
    return len([build() for _ in range(20)])
while os.times().user < 1.5:
    use()
";

fn record_building(session: &Session) -> Recorded<'_> {
    let program = session.write("building.py", BUILDING.as_bytes());
    let options = ["-e", "cpu-clock:u", "-F", "1999"];
    session.record(&options, &[SYSTEM.into(), program])
}

/// While objects of a function that ends are freed, nothing need point to its instructions: that
/// the thread stands still shows which one it is.
#[test]
fn functions_that_free_many_objects_are_known() {
    if !needs(&[&[Need::Root], NEEDS].concat()) || system().is_none() {
        return;
    }
    let session = Session::alone();
    let stacks = record_building(&session).stacks();
    let share = |name: &str| stacks.share(|frames| frames.iter().any(|it| it.starts_with(name)));
    let (used, missing) = (share("use"), share("[no Python frames"));
    assert!(used > 0.9 && missing < 0.05, "{used}, {missing}\n{stacks}");
}

/// The threads of a plain user that read come late more often, which shows in the stack, or in how
/// long they waited: nothing remains uncertain.
#[test]
fn plain_users_know_whether_functions_are_those_of_the_sample() {
    if !needs(&[&[Need::PlainSampling], NEEDS].concat()) || system().is_none() {
        return;
    }
    let session = Session::plain_user_alone();
    let recorded = record_building(&session);
    let json = recorded.report(&["--json", "-"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let python = &json["quality"]["python"];
    let uncertain = python["unknown"]["uncertain"].as_u64().unwrap_or(0);
    let known = python["known"].as_u64().expect("a count");
    assert!(uncertain * 50 < known, "{python}");
}

const SELECTING: &str = "
import select
def wait():
    select.select([], [], [], 0.02)
def first():
    wait()
def second():
    wait()
for _ in range(30):
    first()
    second()
";

/// The call that waits has a large frame: that of the interpreter is beyond the copied part of the
/// stack.
#[test]
fn waits_in_large_frames_have_functions() {
    if !needs(&[&[Need::Root], NEEDS].concat()) || system().is_none() {
        return;
    }
    let session = Session::alone();
    let program = session.write("selecting.py", SELECTING.as_bytes());
    let stacks = session.record(&["--off-cpu"], &[SYSTEM.into(), program]);
    let stacks = stacks.stacks();
    for caller in ["first", "second"] {
        let share = stacks.share(|frames| {
            let mut frames = frames.iter().skip_while(|frame| *frame != caller);
            frames.next().is_some() && frames.next().is_some_and(|frame| frame == "wait")
        });
        assert!(share > 0.4, "{caller}: {share}\n{stacks}");
    }
}

/// Writes how often the thread of its parent that reads the rings has slept. Computes before.
const WATCHING: &str = "\
import glob, os, sys
def work():
    total = 0
    while os.times().user < 2:
        total += sum(range(1000))
work()
for thread in glob.glob(f'/proc/{os.getppid()}/task/*'):
    if open(thread + '/comm').read() == 'reader\\n':
        status = open(thread + '/status').read().split()
        sleeps = status[status.index('voluntary_ctxt_switches:') + 1]
        open(sys.argv[1], 'w').write(sleeps)
";

/// The samples of Python wake the threads that read its frames, and no other: the rings fill
/// meanwhile.
#[test]
fn only_the_readers_of_python_wake_with_each_sample() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::alone();
    let program = session.write("watching.py", WATCHING.as_bytes());
    let sleeps = session.path("sleeps");
    let options = ["-e", "cpu-clock:u", "-F", "999"];
    let recorded = session.record(&options, &[SYSTEM.into(), program, sleeps.clone()]);
    let sleeps = std::fs::read_to_string(sleeps).expect("the program has found the thread");
    let sleeps: u64 = sleeps.parse().expect("a number");
    let samples = recorded.samples();
    assert!(sleeps < samples / 4, "{sleeps} of {samples}");
}
