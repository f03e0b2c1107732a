//! `prof stat` and `prof list` as people run them, beside perf, as root and as a plain user.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

mod attached;
mod formats;
mod list;
mod refused;
mod runs;
mod threads;

use std::process::{Command, Output};

/// Runs a program and its arguments, written as one would type them without quotes.
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

fn prof(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_prof"), arguments)
}

/// As uid 65534; `None` if we are not root and so cannot become somebody else.
fn prof_as_user(arguments: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        return Some(prof(arguments));
    }
    // The build folder may be closed to others: the program goes where they can read it.
    let folder = tempfile::Builder::new()
        .prefix("prof-stat")
        .tempdir_in("/tmp")
        .unwrap();
    let copy = folder.path().join("prof");
    run("chmod", &["755", folder.path().to_str().unwrap()]);
    // By another process: what other tests start meanwhile would inherit our descriptor, and a file
    // that is open for writing cannot be run.
    let to = copy.to_str().unwrap();
    run("install", &["-m", "755", env!("CARGO_BIN_EXE_prof"), to]);
    let user = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        copy.to_str().unwrap(),
    ];
    let output = Command::new("setpriv")
        .args(user)
        .args(arguments)
        .current_dir("/")
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: no setpriv: {error}");
            None
        }
    }
}

fn paranoid() -> i32 {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    level.trim().parse().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The row of an event in the table, which is indented; notes before it may name the event, too.
fn line_of<'t>(text: &'t str, event: &str) -> &'t str {
    let is_row = |line: &&str| line.starts_with(' ');
    let has = |line: &&str| line.split_whitespace().any(|word| word == event);
    let mut rows = text.lines().filter(is_row);
    rows.find(has)
        .unwrap_or_else(|| panic!("no {event}: {text}"))
}

fn perf_is_here() -> bool {
    let here = Command::new("perf")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !here {
        eprintln!("skipped: perf is not installed");
    }
    here
}
