//! `prof stat` and `prof list` as users run them, compared with perf, as root and as a plain user.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

mod attached;
mod formats;
mod list;
mod refused;
mod runs;
mod threads;

use std::process::{Command, Output};

/// Runs a command line, split at spaces.
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

/// Runs it as uid 65534; `None` if we are not root and so cannot change the user.
fn prof_as_user(arguments: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        return Some(prof(arguments));
    }
    // Others may not be allowed to read the build folder: the program is copied to where they can.
    let folder = tempfile::Builder::new()
        .prefix("prof-stat")
        .tempdir_in("/tmp")
        .unwrap();
    let copy = folder.path().join("prof");
    run("chmod", &["755", folder.path().to_str().unwrap()]);
    // By another process: other tests' children would inherit our descriptor, and a file that is
    // open for writing cannot be run.
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
