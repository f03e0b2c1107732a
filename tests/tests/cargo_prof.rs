//! `cargo prof` on a small package.

use std::path::Path;
use std::process::Command;

use prof_tests::{Outcome, Session};

const MANIFEST: &str = r#"
[package]
name = "hello"
version = "0.0.0"
edition = "2021"

[profile.release]
strip = true

[workspace]
"#;

const MAIN: &str = r#"
#[inline(never)]
fn spin(rounds: u64) -> u64 {
    (0..rounds).fold(1, |x, i| std::hint::black_box(x * 31 + i % 7) % 1_000_003)
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(1, |text| text.parse().unwrap());
    println!("{}", spin(rounds * 1_000_000));
}

#[cfg(test)]
mod tests {
    #[test]
    fn spins() {
        assert_ne!(super::spin(100_000_000), 0);
    }
}
"#;

fn package(session: &Session) {
    for folder in ["src", "examples"] {
        std::fs::create_dir(session.path(folder)).unwrap();
    }
    session.write("Cargo.toml", MANIFEST.as_bytes());
    session.write("src/main.rs", MAIN.as_bytes());
    session.write(
        "examples/other.rs",
        MAIN.replace("spin", "other_spin").as_bytes(),
    );
}

fn cargo_prof(session: &Session, arguments: &[&str]) -> Command {
    let binary = prof_tests::prof().with_file_name("cargo-prof");
    let mut command = session.command(&binary, ["prof"]);
    command
        .args(arguments)
        .env("CARGO_TARGET_DIR", session.path("target"));
    command
}

#[test]
fn the_binary_is_built_recorded_and_drawn_without_touching_the_manifest() {
    let session = Session::new();
    package(&session);
    let outcome = Outcome::of(cargo_prof(&session, &["--", "100"]));
    outcome
        .assert_code(0)
        .assert_says(&["flamegraph.svg", "verdict"]);
    assert_eq!(
        outcome.stdout.lines().count(),
        1,
        "the program's own line: {outcome}"
    );
    let svg = std::fs::read_to_string(session.path("flamegraph.svg")).unwrap();
    assert!(svg.contains("hello::spin") && svg.contains("hello::main"));
    assert_eq!(
        std::fs::read_to_string(session.path("Cargo.toml")).unwrap(),
        MANIFEST
    );
}

#[test]
fn examples_and_other_profiles() {
    let session = Session::new();
    package(&session);
    let arguments = [
        "--example",
        "other",
        "--profile",
        "dev",
        "-o",
        "my.svg",
        "--",
        "10",
    ];
    Outcome::of(cargo_prof(&session, &arguments)).assert_code(0);
    let svg = std::fs::read_to_string(session.path("my.svg")).unwrap();
    assert!(svg.contains("other::other_spin"));
    assert!(session.path("prof.data").exists());
    assert!(session.path("target/debug/examples/other").exists());
}

#[test]
fn unit_tests_are_drawn_without_what_calls_them() {
    let session = Session::new();
    package(&session);
    let draw = |options: &[&str]| {
        let arguments = [&["flamegraph", "--unit-test", "hello"], options].concat();
        Outcome::of(cargo_prof(&session, &arguments)).assert_code(0);
        let svg = std::fs::read_to_string(session.path("flamegraph.svg")).unwrap();
        assert!(svg.contains("hello::tests::spins"), "{options:?}");
        svg.contains("test::run_test")
    };
    assert!(!draw(&[]));
    assert!(draw(&["--keep-harness"]));
}

#[test]
fn each_verb_builds_what_it_needs() {
    let session = Session::new();
    package(&session);
    let run = |arguments: &[&str]| Outcome::of(cargo_prof(&session, arguments));
    run(&["record", "--dev", "--", "10"]).assert_code(0);
    assert!(!session.path("flamegraph.svg").exists());
    let tree = run(&["report", "--tree"]);
    tree.assert_code(0);
    assert!(tree.stdout.contains("hello::spin"), "{tree}");
    run(&["html", "--dev", "--", "10"]).assert_code(0);
    let page = std::fs::read_to_string(session.path("prof.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"), "{:.80}", page);
    let counted = run(&["stat", "--dev", "-e", "task-clock", "--", "1"]);
    counted.assert_code(0).assert_says(&["task-clock"]);
    assert_eq!(counted.stdout.lines().count(), 1, "{counted}");
    let watched = run(&["top", "--dev", "-F", "499", "--", "100"]);
    watched.assert_code(0);
    assert!(watched.stdout.contains("hello::spin"), "{watched}");
}

#[test]
fn flags_of_cargo_flamegraph_are_taken_or_answered() {
    let session = Session::new();
    package(&session);
    let run = |arguments: &[&str]| Outcome::of(cargo_prof(&session, arguments));
    run(&[
        "--dev",
        "--root",
        "--deterministic",
        "--no-inline",
        "--",
        "10",
    ])
    .assert_code(0)
    .assert_says(&["--root is not needed"]);
    run(&["--post-process", "sort"]).assert_refused(&["prof report --folded - | sort"]);
    run(&["--cmd", "record -F 99"]).assert_refused(&["prof needs no perf"]);
}

#[test]
fn what_does_not_exist_or_build_is_said() {
    let session = Session::new();
    package(&session);
    let outcome = Outcome::of(cargo_prof(&session, &["--bin", "gone"]));
    assert_ne!(outcome.status.code(), Some(0), "{outcome}");
    outcome.assert_says(&["gone"]);
    session.write("src/main.rs", b"fn main() { not rust }");
    let outcome = Outcome::of(cargo_prof(&session, &["--bin", "hello"]));
    assert_ne!(outcome.status.code(), Some(0), "{outcome}");
    outcome.assert_says(&["error"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = cargo_prof(&session, &[]);
    command.current_dir(elsewhere.path());
    let outcome = Outcome::of(command);
    assert_ne!(outcome.status.code(), Some(0), "{outcome}");
    outcome.assert_says(&["Cargo.toml"]);
    assert!(!Path::new("flamegraph.svg").exists());
}
