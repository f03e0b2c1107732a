//! Python functions are in the stacks of samples, as callers of native ones.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use prof_tests::{
    Compiler, Need, Outcome, Program, Recorded, Session, Stacks, copy_executable, needs,
    starts_at_root,
};
use serde_json::Value;

use crate::pairs;

pub(crate) const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Tool("python3")];

/// A CPython of a known version that has its headers.
#[derive(Debug)]
pub(crate) struct Interpreter {
    path: PathBuf,
    /// What the module needs to be compiled for it.
    flags: &'static [&'static str],
}

/// All of them here. `PROF_PYTHONS` names more, as `PATH` does.
fn interpreters() -> &'static [Interpreter] {
    static ALL: OnceLock<Vec<Interpreter>> = OnceLock::new();
    ALL.get_or_init(|| {
        let named = std::env::var_os("PROF_PYTHONS").unwrap_or_default();
        let named: Vec<_> = std::env::split_paths(&named).collect();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let versions = home.map(|home| home.join(".pyenv/versions"));
        let versions = versions.and_then(|versions| versions.read_dir().ok());
        let pyenv = versions.into_iter().flatten().flatten();
        let paths = pyenv.map(|entry| entry.path().join("bin/python3"));
        let all = paths.chain([SYSTEM.into()]).chain(named);
        all.filter_map(Interpreter::find).collect()
    })
}

pub(crate) const SYSTEM: &str = "/usr/bin/python3";

/// That of the system.
pub(crate) fn system() -> Option<&'static Interpreter> {
    let mut all = interpreters().iter();
    all.find(|python| python.path == Path::new(SYSTEM))
}

impl Interpreter {
    fn find(path: PathBuf) -> Option<Self> {
        let code = "import sys, sysconfig, os; d = sysconfig.get_paths()['include']
assert (3, 8) <= sys.version_info < (3, 15) and os.path.exists(d + '/Python.h')
print(d)";
        let mut python = std::process::Command::new(&path);
        let output = python.args(["-c", code]).output().ok()?;
        let printed = String::from_utf8(output.stdout).ok()?;
        let headers = printed.trim();
        if headers.is_empty() {
            return None;
        }
        let headers = format!("-I{headers}").leak();
        Some(Self {
            path,
            flags: vec!["-O1", "-shared", "-fPIC", headers].leak(),
        })
    }
}

/// Puts the program of pairs for this interpreter into the session's directory.
pub(crate) fn install_pairs(session: &Session, python: &Interpreter) {
    let module = Program::new(&["python_pairs.c"], Compiler::Gcc, python.flags).build();
    copy_executable(&module, &session.path("pairs.so"));
    // A copy: plain users may not be allowed to enter the checkout.
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let text = std::fs::read(programs.join("python_pairs.py")).expect("the program");
    session.write("python_pairs.py", &text);
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
pub(crate) fn known_callers(stacks: &Stacks, python: &Interpreter) -> f64 {
    pairs::known_callers(stacks, "Python", &format!("{python:?}"))
}

/// How the program of pairs is recorded.
pub(crate) struct Way {
    pub(crate) sampler: &'static str,
    /// Hertz.
    pub(crate) rate: &'static str,
    pub(crate) calls: &'static str,
    /// How many threads make calls besides the main one.
    pub(crate) threads: &'static str,
    /// What starts it.
    pub(crate) launcher: &'static [&'static str],
}

/// As many samples as twice the calls have at 999 Hz.
pub(crate) const ONE_THREAD: Way = Way {
    sampler: "auto",
    rate: "1999",
    calls: "40000",
    threads: "0",
    launcher: &[],
};
pub(crate) const THREE_THREADS: Way = Way {
    calls: "30000",
    threads: "2",
    ..ONE_THREAD
};

/// `at_least` is the share of the native functions' samples whose Python callers are known.
pub(crate) fn check(session: &Session, python: &Interpreter, way: &Way, at_least: f64) {
    install_pairs(session, python);
    let program = session.path("python_pairs.py");
    let command = [python.path.to_str(), program.to_str()];
    let command = command.map(|word| word.expect("UTF-8"));
    let command = [way.launcher, &command[..], &[way.calls, way.threads]].concat();
    let options = [
        "-e",
        "cpu-clock:u",
        "-F",
        way.rate,
        "--sampler",
        way.sampler,
    ];
    let recorded = session.record(&options, &command);
    let stacks = recorded.stacks();
    let known = known_callers(&stacks, python);
    assert!(known >= at_least, "{python:?}: {known}\n{stacks}");
    assert_is_python(&recorded, "f0");
    pairs::assert_folded(&stacks, "Python", "_PyEval_EvalFrameDefault");
}

/// Like [`check`], with each interpreter.
fn check_interpreters(way: &Way, at_least: f64) {
    if !needs(NEEDS) {
        return;
    }
    for python in interpreters() {
        check(&Session::new(), python, way, at_least);
    }
}

/// Waits that end before prof has seen them lack their functions.
#[test]
fn waits_in_all_that_runs_have_functions() {
    if !needs(&[NEEDS, &[Need::Root]].concat()) || system().is_none() {
        return;
    }
    let session = Session::new();
    let waiting = "
import time
open('/proc/self/comm', 'w').write('waits-in-python')
def wait():
    time.sleep(0.2)
def first():
    wait()
def second():
    wait()
for _ in range(10):
    first()
    second()
";
    let program = session.write("waiting.py", waiting.as_bytes());
    let recorded = session.record(&["-a", "--off-cpu"], &[SYSTEM.into(), program]);
    let report = recorded.report(&["--comm", "waits-in-python", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    for caller in ["first", "second"] {
        let share = stacks.share(|frames| {
            let mut frames = frames.iter().skip_while(|frame| *frame != caller);
            frames.next().is_some() && frames.next().is_some_and(|frame| frame == "wait")
        });
        assert!(share > 0.4, "{caller}: {share}\n{stacks}");
    }
}

#[test]
fn natives_have_the_callers_that_they_had() {
    check_interpreters(&ONE_THREAD, 0.95);
}

/// They take turns on all CPUs.
#[test]
fn threads_have_stacks_of_their_own() {
    check_interpreters(&THREE_THREADS, 0.95);
}

/// The frames of a stopped thread are exact.
#[test]
fn stopped_threads_have_exact_stacks() {
    let way = Way {
        sampler: "ptrace",
        rate: "999",
        ..THREE_THREADS
    };
    check_interpreters(&way, 0.97);
}

/// As in a container: inside, the interpreter and its threads have other ids.
#[test]
fn threads_of_another_pid_namespace_are_known() {
    let needs_all = [NEEDS, &[Need::MountNamespaces]].concat();
    if !needs(&needs_all) {
        return;
    }
    let python = system().expect("an interpreter");
    for sampler in ["auto", "ptrace"] {
        let way = Way {
            sampler,
            rate: "999",
            launcher: &["unshare", "--pid", "--fork"],
            ..THREE_THREADS
        };
        check(&Session::new(), python, &way, 0.95);
    }
}

const RETURNING: &str = "
class Made:
    def __init__(self, value):
        self.value = value
def empty():
    pass
def work():
    for number in range(1_500_000):
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
        let session = Session::new();
        let program = session.write("returning.py", RETURNING.as_bytes());
        let options = ["--sampler", "ptrace", "-F", "1999"];
        let stacks = session.record(&options, &[&python.path, &program]);
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
fn check_kind(python: &Interpreter, kind: &str, callers: &[&str], leaf: &str) {
    let session = Session::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let program = std::fs::read(programs.join("python_kinds.py")).expect("the program");
    let program = session.write("python_kinds.py", &program);
    let command = [python.path.as_os_str(), program.as_os_str(), kind.as_ref()];
    // Some MB of stack take a millisecond or several to read: how many stacks of such depth are
    // read before the program runs on depends on the machine, and those that are not are marked.
    let (rate, enough) = match kind {
        "recursion" => ("249", 0.3),
        _ => ("999", 0.8),
    };
    let options = ["-e", "cpu-clock:u", "-F", rate];
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
        match kind {
            // The rest of such a stack may be gone when the program ends.
            "recursion" if !starts_at_root(frames) => {
                marked += weight;
                continue;
            }
            "recursion" => assert_eq!(named.len(), 5001, "{python:?}"),
            _ => assert_eq!(named, callers, "{python:?}, {kind}: {frames:?}"),
        }
        right += weight;
    }
    let known = right as f64 / (right + marked).max(1) as f64;
    assert!(known > enough, "{python:?}, {kind}: {known}\n{stacks}");
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
            // They fit into a sample, but not with the native frames that each has before 3.11.
            ("recursion", &["down"], "spin"),
        ] {
            check_kind(python, kind, callers, leaf);
        }
    }
}

/// Like an interpreter of an unknown version: it has an evaluation loop, but no structures that
/// prof can read.
const UNKNOWN_VERSION: &str = "
volatile unsigned long work;
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
    for (int i = 0; i < 150000000; i++)
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
    if !needs(NEEDS) || system().is_none() {
        return;
    }
    let session = Session::plain_user();
    let program = session.write("resting.py", RESTING.as_bytes());
    let stacks = session
        .record(&["--off-cpu"], &[SYSTEM.into(), program])
        .stacks();
    let share = stacks.share(|frames| {
        let functions = ["work", "rest"];
        let named = frames.iter().filter(|it| functions.contains(&it.as_str()));
        named.eq(functions)
    });
    assert!(share > 0.9, "{share}: {stacks}");
}

const WORKING: &str = "
def work(count):
    total = 0
    for number in range(count):
        total += number * number
    return total
for _ in range(1000):
    work(40000)
";

/// Short processes have the reader wake every millisecond, often before the watcher has come that
/// the newest sample has woken.
#[test]
fn functions_are_read_beside_short_processes() {
    if !needs(NEEDS) || system().is_none() {
        return;
    }
    let session = Session::alone();
    session.write("working.py", WORKING.as_bytes());
    let script = format!("seq 1000 | xargs -P3 -n1 true & exec {SYSTEM} working.py");
    let command = ["sh", "-c", &script].map(String::from);
    let stacks = session.record(&["-e", "cpu-clock:u"], &command).stacks();
    let share = |name: &str| {
        let is_named = |frame: &String| frame.starts_with(name);
        stacks.share(|frames| frames.iter().any(is_named))
    };
    let (named, missing) = (share("work"), share("[no Python frames"));
    let missing = missing / (named + missing);
    assert!(missing < 0.015, "{named}, {missing}:\n{stacks}");
}
