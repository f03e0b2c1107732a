//! Python functions are in the stacks of samples, as callers of native ones.

use std::path::{Path, PathBuf};

use prof_tests::{Need, Outcome, Recorded, Session, Stacks, needs};
use serde_json::Value;

const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Tool("python3")];

/// Each CPython of a known version that has its headers. `PROF_PYTHONS` names more of them, as
/// `PATH` does.
fn interpreters() -> Vec<PathBuf> {
    let named = std::env::var_os("PROF_PYTHONS").unwrap_or_default();
    let named: Vec<_> = std::env::split_paths(&named).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let versions = home.map(|home| home.join(".pyenv/versions"));
    let versions = versions.and_then(|versions| versions.read_dir().ok());
    let pyenv = versions.into_iter().flatten().flatten();
    let paths = pyenv.map(|entry| entry.path().join("bin/python3"));
    let all = paths.chain(["/usr/bin/python3".into()]).chain(named);
    all.filter(|python| includes(python).is_some()).collect()
}

/// The folder of its headers.
fn includes(python: &Path) -> Option<String> {
    let code = "import sys, sysconfig, os; d = sysconfig.get_paths()['include']
assert (3, 8) <= sys.version_info < (3, 15) and os.path.exists(d + '/Python.h'); print(d)";
    let output = std::process::Command::new(python)
        .args(["-c", code])
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim().to_owned())
}

/// Whether a call from Python to Python needs no native stack: 3.11 and later.
fn calls_without_native_frames(python: &Path) -> bool {
    let code = "import sys; sys.exit(sys.version_info < (3, 11))";
    let status = std::process::Command::new(python)
        .args(["-c", code])
        .status();
    status.is_ok_and(|status| status.success())
}

fn build(session: &Session, python: &Path) {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    // Copies: plain users may not be allowed to enter the checkout.
    for name in ["python_pairs.c", "python_pairs.py"] {
        let text = std::fs::read(programs.join(name)).expect("the program");
        session.write(name, &text);
    }
    let include = format!("-I{}", includes(python).expect("its headers"));
    let mut gcc = session.command(Path::new("gcc"), ["-O1", "-g", "-shared", "-fPIC"]);
    gcc.args([&include, "python_pairs.c", "-o", "pairs.so"]);
    Outcome::of(gcc).assert_code(0);
}

/// The Python function that called the native one, which is a digit: the digit of its name.
fn caller(frames: &[String], native: usize) -> Option<&str> {
    let before = frames[..native].iter().rev();
    before
        .filter_map(|frame| frame.strip_prefix('f'))
        .find(|rest| rest.len() == 1)
}

/// Reports know the language of this function, however it is called.
fn assert_is_python(recorded: &Recorded<'_>, function: &str) {
    let json = recorded.report(&["--json", "-"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let functions = json["functions"].as_array().expect("functions");
    let mut named = functions.iter().filter(|it| it["name"] == function);
    let kind = named.next().map(|it| &it["kind"]);
    assert_eq!(kind, Some(&Value::from("python")));
}

/// The share of stacks with native functions whose Python callers are known. Those must be right.
fn known_callers(stacks: &Stacks, python: &Path) -> f64 {
    let (mut right, mut marked) = (0, 0);
    for (frames, weight) in stacks.iter() {
        let is_native = |frame: &String| frame.len() == 2 && frame.starts_with('n');
        let Some(native) = frames.iter().position(is_native) else {
            continue;
        };
        if frames.iter().any(|frame| frame.starts_with("[no Python")) {
            marked += weight;
            continue;
        }
        let called = frames[native].strip_prefix('n');
        assert_eq!(caller(frames, native), called, "{python:?}: {frames:?}");
        right += weight;
    }
    assert!(right > 0, "{python:?}: {stacks}");
    right as f64 / (right + marked) as f64
}

/// `at_least` is the share of the native functions' samples whose Python callers are known.
fn check(session: &Session, python: &Path, (sampler, threads): (&str, &str), at_least: f64) {
    build(session, python);
    let program = session.path("python_pairs.py");
    let calls = if threads == "0" { "80000" } else { "60000" };
    let command = [
        python.to_str(),
        program.to_str(),
        Some(calls),
        Some(threads),
    ];
    let command = command.map(|word| word.expect("UTF-8"));
    let options = ["-e", "cpu-clock:u", "-F", "999", "--sampler", sampler];
    let recorded = session.record(&options, &command);
    let stacks = recorded.stacks();
    let known = known_callers(&stacks, python);
    assert!(known >= at_least, "{python:?}: {known}\n{stacks}");
    assert_is_python(&recorded, "f0");
    let loops = stacks.share(|frames| {
        let is_loop = |frame: &String| frame.starts_with("_PyEval_EvalFrameDefault");
        frames.iter().any(is_loop) && !frames.iter().any(|frame| frame.starts_with("[no Python"))
    });
    assert!(loops == 0.0, "interpreters fold: {stacks}");
}

/// Like [`check`], with each interpreter.
fn check_interpreters(how: (&str, &str), at_least: f64) {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        check(&Session::alone(), &python, how, at_least);
    }
}

#[test]
fn natives_have_the_callers_that_they_had() {
    check_interpreters(("auto", "0"), 0.95);
}

/// They take turns on all CPUs.
#[test]
fn threads_have_stacks_of_their_own() {
    check_interpreters(("auto", "2"), 0.95);
}

/// The reader has no priority: threads that take turns go on before it runs.
#[test]
fn plain_users_see_the_same() {
    let python = Path::new("/usr/bin/python3");
    if !needs(NEEDS) || includes(python).is_none() {
        return;
    }
    for (threads, at_least) in [("0", 0.9), ("2", 0.7)] {
        let session = Session::plain_user_alone();
        check(&session, python, ("auto", threads), at_least);
    }
}

/// Context switches are sampled, too, and the threads that read the frames cause some.
fn check_with_waits(session: &Session, options: &[&str], at_least: f64) {
    let python = Path::new("/usr/bin/python3");
    build(session, python);
    let program = session.path("python_pairs.py");
    let command = ["/usr/bin/python3", program.to_str().expect("UTF-8")];
    let command = [&command[..], &["80000", "0"]].concat();
    let stacks = session.record(options, &command).stacks();
    let known = known_callers(&stacks, python);
    assert!(known >= at_least, "{options:?}: {known}\n{stacks}");
}

#[test]
fn callers_are_known_beside_waits() {
    if needs(&[&[Need::Root], NEEDS].concat()) && includes(Path::new("/usr/bin/python3")).is_some()
    {
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
    if needs(&[&[Need::PlainSampling], NEEDS].concat())
        && includes(Path::new("/usr/bin/python3")).is_some()
    {
        check_with_waits(&Session::plain_user_alone(), &["--wall"], 0.8);
    }
}

/// The frames of a stopped thread are exact.
#[test]
fn stopped_threads_have_exact_stacks() {
    check_interpreters(("ptrace", "2"), 0.97);
}

const RETURNING: &str = "
class Made:
    def __init__(self, value):
        self.value = value
def empty():
    pass
def work():
    for number in range(3_000_000):
        Made(number)
        empty()
work()
";

/// A function that has just returned leaves nothing that points into its caller.
#[test]
fn stopped_threads_that_return_have_stacks() {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        let session = Session::alone();
        let program = session.write("returning.py", RETURNING.as_bytes());
        let stacks = session.record(&["--sampler", "ptrace"], &[&python, &program]);
        let stacks = stacks.stacks();
        let share = |wanted: fn(&str) -> bool| {
            stacks.share(|frames| frames.iter().any(|frame| wanted(frame)))
        };
        assert!(share(|frame| frame == "work") > 0.5, "{python:?}\n{stacks}");
        let ran_on = share(|frame| frame.starts_with("[no Python frames: the program"));
        assert!(ran_on == 0.0, "{python:?}: {ran_on}\n{stacks}");
    }
}

/// Functions that are called in unusual ways have the callers of the source. `leaf` takes the time.
fn check_kind(python: &Path, kind: &str, callers: &[&str], leaf: &str) {
    let session = Session::alone();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let program = std::fs::read(programs.join("python_kinds.py")).expect("the program");
    let program = session.write("python_kinds.py", &program);
    let command = [python.as_os_str(), program.as_os_str(), kind.as_ref()];
    let options = ["-e", "cpu-clock:u", "-F", "999"];
    let stacks = session.record(&options, &command).stacks();
    let (mut right, mut marked) = (0, 0);
    for (frames, weight) in stacks.iter() {
        if frames.iter().any(|frame| frame.starts_with("[no Python")) {
            marked += weight;
            continue;
        }
        let Some(last) = frames.iter().rposition(|frame| frame == leaf) else {
            continue;
        };
        let named = frames[..last]
            .iter()
            .filter(|it| callers.contains(&it.as_str()));
        let named: Vec<_> = named.map(String::as_str).collect();
        let repeated = callers.len() == 1 && named.len() > 1;
        match repeated {
            true => assert_eq!(named.len(), 5001, "{python:?}, {kind}"),
            false => assert_eq!(named, callers, "{python:?}, {kind}: {frames:?}"),
        }
        right += weight;
    }
    let known = right as f64 / (right + marked).max(1) as f64;
    assert!(known > 0.8, "{python:?}, {kind}: {known}\n{stacks}");
}

#[test]
fn callers_are_known_for_all_kinds_of_calls() {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        for (kind, callers, leaf) in [
            ("generator", &["consume", "produce"][..], "spin"),
            ("coroutine", &["serve", "step"], "spin"),
            ("callback", &["order", "key"], "spin"),
            ("fork", &["fork", "order", "key"], "spin"),
            ("exec", &["order", "key"], "spin"),
            ("subinterpreter", &["outer"], "in_the_subinterpreter"),
        ] {
            check_kind(&python, kind, callers, leaf);
        }
        // Before, each function has native frames, and there are more than a sample can hold.
        if calls_without_native_frames(&python) {
            check_kind(&python, "recursion", &["down"], "spin");
        }
    }
}

/// Like an interpreter of an unknown version: it has an evaluation loop, but no structures that
/// prof can read.
const UNKNOWN_VERSION: &str = "
volatile unsigned long work;
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
    for (int i = 0; i < 400000000; i++)
        work += i;
}
int main(void)
{
    _PyEval_EvalFrameDefault();
    return work == 0;
}
";

/// The stacks are whole, but do not show the user's functions: the verdict says so.
#[test]
fn unknown_versions_are_named_in_the_verdict() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    for (name, evaluation) in [
        ("python3.99", "_PyEval_EvalFrameDefault"),
        ("python2.7", "PyEval_EvalFrameEx"),
    ] {
        let source = UNKNOWN_VERSION.replace("_PyEval_EvalFrameDefault", evaluation);
        session.write("python.c", source.as_bytes());
        let program = session.path(name);
        let mut gcc = session.command(Path::new("gcc"), ["-O1", "-o"]);
        gcc.arg(&program).arg(session.path("python.c"));
        Outcome::of(gcc).assert_code(0);
        let recorded = session.record(&["-e", "cpu-clock:u"], &[program]);
        recorded.outcome.assert_says(&[
            "verdict: fair",
            "without Python frames: prof reads CPython 3.8 to 3.14 only",
        ]);
        let stacks = recorded.stacks();
        assert!(stacks.self_share(evaluation) > 0.9, "{stacks}");
    }
}

const RESTING: &str = "
import time
def rest():
    time.sleep(0.02)
def work():
    for _ in range(60):
        rest()
work()
";

/// The kernel does not show plain users where threads wait: prof reads their stacks while they
/// wait.
#[test]
fn waits_of_a_plain_user_have_functions() {
    if !needs(NEEDS) || includes(Path::new("/usr/bin/python3")).is_none() {
        return;
    }
    let session = Session::plain_user();
    let program = session.write("resting.py", RESTING.as_bytes());
    let python = PathBuf::from("/usr/bin/python3");
    let stacks = session.record(&["--off-cpu"], &[python, program]).stacks();
    let share = stacks.share(|frames| {
        let functions = ["work", "rest"];
        let named = frames.iter().filter(|it| functions.contains(&it.as_str()));
        named.eq(functions)
    });
    assert!(share > 0.9, "{share}: {stacks}");
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
    let python = Path::new("/usr/bin/python3");
    if !needs(&[&[Need::Root], NEEDS].concat()) || includes(python).is_none() {
        return;
    }
    let session = Session::alone();
    let program = session.write("selecting.py", SELECTING.as_bytes());
    let stacks = session.record(&["--off-cpu"], &[python, &program]);
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
    let python = PathBuf::from("/usr/bin/python3");
    let options = ["-e", "cpu-clock:u", "-F", "999"];
    let recorded = session.record(&options, &[python, program, sleeps.clone()]);
    let sleeps = std::fs::read_to_string(sleeps).expect("the program has found the thread");
    let sleeps: u64 = sleeps.parse().expect("a number");
    let samples = recorded.samples();
    assert!(sleeps < samples / 4, "{sleeps} of {samples}");
}
