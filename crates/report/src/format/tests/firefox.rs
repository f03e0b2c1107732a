//! The Firefox Profiler's format, read by Mozilla's own command-line reader, which shares its code
//! with profiler.firefox.com.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::firefox;
use super::{filters, readers, written};
use crate::calltree::{CallTree, Split};
use crate::filter::Filter;
use crate::symbolize::SymbolizedProfile;
use crate::testing::{TestProfile, demo, everything};
use crate::view::flat::Flat;

/// The reader: a server that has read one profile, and answers requests.
struct Reader {
    program: PathBuf,
    directory: tempfile::TempDir,
    server: Child,
}

impl Reader {
    fn load(file: &[u8]) -> Option<Self> {
        let program = "@firefox-devtools/profiler-cli/dist/profiler-cli.js";
        let program = readers::npm_packages()?.join(program);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("demo.json");
        fs::write(&path, file).unwrap();
        // Its own `load` gives up on a server that is not there within half a second.
        let server = command(&program, directory.path())
            .arg("--daemon")
            .arg(path)
            .args(["--session", SESSION])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let reader = Self {
            program,
            directory,
            server,
        };
        reader.wait_until_loaded();
        Some(reader)
    }

    /// Asking earlier does harm: a client that gets no answer removes the session.
    fn wait_until_loaded(&self) {
        let log = self.directory.path().join(format!("{SESSION}.log"));
        let is_loaded = || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            log.contains("Profile loaded successfully")
        };
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_loaded() {
            assert!(Instant::now() < deadline, "the reader does not get ready");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.program, self.directory.path());
        command.args(arguments).args(["--session", SESSION]);
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        readers::output(&mut self.command(arguments))
    }

    /// Own and total weight of each function, in milliseconds, over all threads.
    fn functions(&self, threads: usize) -> BTreeMap<String, (u64, u64)> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for thread in 0..threads {
            let thread = format!("t-{thread}");
            let arguments = [
                "thread",
                "functions",
                "--include-idle",
                "--limit",
                "0",
                "--thread",
            ];
            let answer = self.ask(&[&arguments[..], &[&thread, "--json"]].concat());
            let answer: Value = serde_json::from_str(&answer).unwrap();
            for function in answer["functions"].as_array().unwrap() {
                let number = |key: &str| function[key].as_f64().unwrap().round() as u64;
                let sum = sums.entry(text(&function["name"])).or_default();
                sum.0 += number("selfSamples");
                sum.1 += number("totalSamples");
            }
        }
        sums
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

const SESSION: &str = "test";

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new("node");
    command
        .arg(program)
        .env("PROFILER_CLI_SESSION_DIR", home)
        .env("PROFILER_CLI_NO_SYMBOLICATE", "1")
        .env("HOME", home);
    command
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn expected(symbolized: &SymbolizedProfile, filter: &Filter) -> BTreeMap<String, (u64, u64)> {
    let tree = CallTree::new(symbolized, filter, Split::Nothing).unwrap();
    let milliseconds = |weight: u64| weight / 1_000_000;
    Flat::new(&tree)
        .rows
        .iter()
        .map(|row| {
            let name = symbolized[row.function].name.to_string();
            let weights = (milliseconds(row.own.value), milliseconds(row.total.value));
            (name, weights)
        })
        .collect()
}

/// Each filter takes Mozilla's reader seconds.
fn check_sums(filter: &str) {
    let symbolized = demo();
    let mut filters = filters().into_iter();
    let (name, filter) = filters.find(|(name, _)| *name == filter).unwrap();
    let file = written(|out| firefox::write(&symbolized, &filter, out));
    let threads = serde_json::from_slice::<Value>(&file).unwrap()["threads"]
        .as_array()
        .unwrap()
        .len();
    let Some(reader) = Reader::load(&file) else {
        return;
    };
    let expected = expected(&symbolized, &filter);
    assert_eq!(reader.functions(threads), expected, "{name}");
}

#[test]
fn mozillas_reader_sums_up_as_we_do() {
    check_sums("everything");
}

#[test]
fn mozillas_reader_sums_up_without_inlined_functions() {
    check_sums("no_inline");
}

#[test]
fn mozillas_reader_sums_up_without_hidden_functions() {
    check_sums("hide");
}

#[test]
fn mozillas_reader_sums_up_threads_of_one_name() {
    check_sums("comm");
}

#[test]
fn categories_are_languages() {
    let file = written(|out| firefox::write(&demo(), &everything(), out));
    let json: Value = serde_json::from_slice(&file).unwrap();
    let shared = &json["shared"];
    let at = |table: &Value, index: &Value| table[index.as_u64().unwrap() as usize].clone();
    let frames = &shared["frameTable"];
    let functions = frames["func"].as_array().unwrap();
    let categories = functions.iter().zip(frames["category"].as_array().unwrap());
    let categories: BTreeMap<String, String> = categories
        .map(|(func, category)| {
            let name = at(&shared["funcTable"]["name"], func);
            let name = text(&at(&shared["stringArray"], &name));
            (
                name,
                text(&at(&json["meta"]["categories"], category)["name"]),
            )
        })
        .collect();
    let check = |name: &str, expected: &str| assert_eq!(categories[name], expected, "{name}");
    check("main", "C");
    check("ns::inner", "C++");
    check("vfs_write", "Kernel");
    check("Interpreter", "Run-time code");
    check("[truncated: the code has no unwind information]", "Missing");
}

#[test]
fn mozillas_reader_finds_processes_and_threads() {
    let file = written(|out| firefox::write(&demo(), &everything(), out));
    let Some(reader) = Reader::load(&file) else {
        return;
    };
    let info = reader.ask(&["profile", "info"]);
    for part in [
        "5 threads across 3 processes",
        "worker [tid 2]",
        "demo [pid 1]",
        "kworker [tid 9]",
    ] {
        assert!(info.contains(part), "no {part} in\n{info}");
    }
}

#[test]
fn mozillas_reader_finds_when_threads_lived() {
    let mut test = TestProfile::new();
    for line in ["app/1 main 10", "worker/1/2 work 10", "app/1 main 10"] {
        test.line(line);
    }
    test.life(1, 2, 1..2);
    test.life(1, 1, 0..7);
    let file = written(|out| firefox::write(&test.finish(), &everything(), out));
    let json: Value = serde_json::from_slice(&file).unwrap();
    let times = |thread: usize| {
        let thread = &json["threads"][thread];
        ["registerTime", "unregisterTime", "processShutdownTime"].map(|key| thread[key].as_f64())
    };
    assert_eq!(times(0), [Some(0.0), Some(7.0), Some(7.0)]);
    assert_eq!(times(1), [Some(1.0), Some(2.0), None]);
    let Some(reader) = Reader::load(&file) else {
        return;
    };
    for (thread, name) in [("t-0", "Process"), ("t-1", "Thread")] {
        let markers = reader.ask(&["thread", "markers", "--thread", thread]);
        assert!(markers.contains(name), "{markers}");
    }
}
