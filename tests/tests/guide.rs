//! The manual's commands do what the manual says: each line with `$` in a `console` block of
//! docs/guide runs. `PROF_BLESS=1` (`cargo xtask docs`) writes their output below them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use prof_tests::{Need, Outcome, Session, needs, prof};

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide")
}

/// Runs the commands of a page, in a directory with the guide's programs.
fn check(page: &str) {
    let session = Session::new();
    copy(&guide().join("programs"), session.directory());
    let path = guide().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let refreshed = run(&session, &text);
    if std::env::var_os("PROF_BLESS").is_some() {
        fs::write(&path, refreshed).unwrap();
    }
}

/// Copies the contents of a folder, without build directories.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if !path.is_dir() {
            fs::copy(&path, to.join(name)).unwrap();
        } else if name != "target" {
            fs::create_dir(to.join(name)).unwrap();
            copy(&path, &to.join(name));
        }
    }
}

/// The text with the current output of its commands.
fn run(session: &Session, text: &str) -> String {
    let mut refreshed = String::new();
    let mut directory = session.directory().to_owned();
    let mut in_console = false;
    let mut commands = 0;
    for line in text.lines() {
        let was_in_console = in_console;
        if line.starts_with("```") {
            in_console = line == "```console";
        }
        if !in_console || !was_in_console {
            let _ = writeln!(refreshed, "{line}");
            continue;
        }
        // Output of an earlier time is left out.
        if let Some(command) = line.strip_prefix("$ ") {
            commands += 1;
            let printed = match command.strip_prefix("cd ") {
                Some(name) => {
                    directory.push(name);
                    String::new()
                }
                None => printed(session, &directory, command),
            };
            let end = if printed.is_empty() { "" } else { "\n" };
            let _ = write!(refreshed, "{line}\n{printed}{end}");
        }
    }
    assert!(commands > 0, "no commands in {text:.60}");
    refreshed
}

/// The output of a command, as a terminal shows it.
fn printed(session: &Session, directory: &Path, command: &str) -> String {
    let script = format!("exec 2>&1; PATH=\"$(dirname \"$PROF\"):$PATH\"; {command}");
    let mut shell = session.command(Path::new("sh"), ["-c", &script]);
    shell.current_dir(directory).env_remove("CARGO_TARGET_DIR");
    shell.env("PROF", prof()).env("COLUMNS", "100");
    let outcome = Outcome::of(shell);
    outcome.assert_code(0);
    let directory = format!("{}/", session.directory().display());
    outcome.stdout.trim_end().replace(&directory, "")
}

#[test]
fn hot_line() {
    check("hot-line.md");
}

#[test]
fn waiting() {
    check("waiting.md");
}

#[test]
fn allocations() {
    if needs(&[Need::Root]) {
        check("allocations.md");
    }
}

#[test]
fn compare() {
    check("compare.md");
}

#[test]
fn plain_user() {
    check("plain-user.md");
}

#[test]
fn service() {
    if needs(&[Need::Tool("python3")]) {
        check("service.md");
    }
}

#[test]
fn languages() {
    if needs(&[Need::Tool("node")]) {
        check("languages.md");
    }
}

#[test]
fn containers() {
    if needs(&[Need::Root, Need::MountNamespaces]) {
        check("containers.md");
    }
}

#[test]
fn rust() {
    check("rust.md");
}

#[test]
fn other_profilers() {
    if needs(&[Need::Tool("perf")]) {
        check("../other-profilers.md");
    }
}

#[test]
fn each_page_with_commands_is_run() {
    let source = include_str!("guide.rs");
    for entry in fs::read_dir(guide()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|ending| ending == "md") {
            let text = fs::read_to_string(&path).unwrap();
            let runs = source.contains(&format!("check(\"{name}\")"));
            assert_eq!(runs, text.contains("```console"), "{name}");
        }
    }
}
