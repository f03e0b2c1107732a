//! Python functions stand in the stacks of samples where they called the native ones.

use std::path::{Path, PathBuf};

use prof_tests::{Need, Outcome, Recorded, Session, needs};
use serde_json::Value;

const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Tool("python3")];

/// Each CPython of a known version that has its headers.
fn interpreters() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let versions = home.map(|home| home.join(".pyenv/versions"));
    let versions = versions.and_then(|versions| versions.read_dir().ok());
    let pyenv = versions.into_iter().flatten().flatten();
    let paths = pyenv.map(|entry| entry.path().join("bin/python3"));
    let all = paths.chain(["/usr/bin/python3".into()]);
    all.filter(|python| includes(python).is_some()).collect()
}

/// Where the headers are.
fn includes(python: &Path) -> Option<String> {
    let code = "import sys, sysconfig, os; d = sysconfig.get_paths()['include']
assert (3, 11) <= sys.version_info < (3, 14) and os.path.exists(d + '/Python.h'); print(d)";
    let output = std::process::Command::new(python)
        .args(["-c", code])
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim().to_owned())
}

fn build(session: &Session, python: &Path) {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let include = format!("-I{}", includes(python).expect("its headers"));
    let mut gcc = session.command(Path::new("gcc"), ["-O1", "-g", "-shared", "-fPIC"]);
    gcc.arg(include).arg(programs.join("python_pairs.c"));
    gcc.arg("-o").arg(session.path("pairs.so"));
    Outcome::of(gcc).assert_code(0);
    let program = std::fs::read(programs.join("python_pairs.py")).expect("the program");
    session.write("python_pairs.py", &program);
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

/// `at_least` is the share of the native functions' samples whose Python callers are known.
fn check(session: &Session, python: &Path, threads: &str, at_least: f64) {
    build(session, python);
    let program = session.path("python_pairs.py");
    let command = [python.to_str(), program.to_str(), Some("2"), Some(threads)];
    let command = command.map(|word| word.expect("UTF-8"));
    let options = ["-e", "cpu-clock:u", "-F", "999"];
    let recorded = session.record(&options, &command);
    let stacks = recorded.stacks();
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
    let known = right as f64 / (right + marked).max(1) as f64;
    assert!(
        right > 0 && known >= at_least,
        "{python:?}: {known}\n{stacks}"
    );
    assert_is_python(&recorded, "f0");
    let loops = stacks.share(|frames| {
        let is_loop = |frame: &String| frame.starts_with("_PyEval_EvalFrameDefault");
        frames.iter().any(is_loop) && !frames.iter().any(|frame| frame.starts_with("[no Python"))
    });
    assert!(loops == 0.0, "interpreters fold: {stacks}");
}

#[test]
fn natives_have_the_callers_that_they_had() {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        let session = Session::alone();
        check(&session, &python, "0", 0.8);
    }
}

/// The reader is on one CPU, and threads that take turns go on on the other ones: more stacks are
/// marked, none is wrong.
#[test]
fn threads_have_stacks_of_their_own() {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        let session = Session::alone();
        check(&session, &python, "2", 0.5);
    }
}

/// What an interpreter of an unknown version does to `prof`: it has an evaluation loop, and no
/// structures that can be read.
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

/// The stacks are whole, and yet do not show what the user wrote: the verdict says so.
#[test]
fn unknown_versions_are_named_in_the_verdict() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    session.write("python3.c", UNKNOWN_VERSION.as_bytes());
    let mut gcc = session.command(Path::new("gcc"), ["-O1", "-o"]);
    gcc.arg(session.path("python3.99"))
        .arg(session.path("python3.c"));
    Outcome::of(gcc).assert_code(0);
    let program = session.path("python3.99");
    let recorded = session.record(&["-e", "cpu-clock:u"], &[program]);
    recorded.outcome.assert_says(&[
        "verdict: fair",
        "without Python frames: only those of CPython 3.11 to 3.13 can be read",
    ]);
    let stacks = recorded.stacks();
    assert!(
        stacks.self_share("_PyEval_EvalFrameDefault") > 0.9,
        "{stacks}"
    );
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

/// The kernel does not show plain users where threads wait: they are looked at while they do.
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
