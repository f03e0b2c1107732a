//! `cargo prof` on a small package.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
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
fn the_package_of_the_folder_is_chosen() {
    let session = Session::new();
    package(&session);
    session.write(
        "Cargo.toml",
        format!("{MANIFEST}members = [\"sub\"]\n").as_bytes(),
    );
    std::fs::create_dir_all(session.path("sub/src")).unwrap();
    let manifest = "[package]\nname = \"below\"\nversion = \"0.0.0\"\n";
    session.write("sub/Cargo.toml", manifest.as_bytes());
    session.write(
        "sub/src/main.rs",
        MAIN.replace("spin", "sub_spin").as_bytes(),
    );
    let draws = |folder: &str, options: &[&str], function: &str| {
        let svg = session.path("drawn.svg");
        let mut command = cargo_prof(&session, options);
        command.arg("-o").arg(&svg).args(["--", "10"]);
        command.current_dir(session.path(folder));
        let outcome = Outcome::of(command);
        outcome.assert_code(0);
        let svg = std::fs::read_to_string(svg).unwrap();
        assert!(svg.contains(function), "{outcome}");
    };
    draws(".", &[], "hello::spin");
    draws("sub", &[], "below::sub_spin");
    let named = ["--manifest-path", "sub/Cargo.toml"];
    draws(".", &named, "below::sub_spin");
}

#[test]
fn unit_tests_are_drawn_without_their_callers() {
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
    // Stable Rust has no benchmarks inside a program, but libtest looks for them.
    let benchmarks = Outcome::of(cargo_prof(&session, &["record", "--unit-bench", "hello"]));
    benchmarks.assert_code(0);
    assert!(benchmarks.stdout.contains("0 measured"), "{benchmarks}");
}

#[test]
fn integration_tests_run_in_their_package() {
    let session = Session::new();
    package(&session);
    std::fs::create_dir(session.path("tests")).unwrap();
    let test = MAIN.replace("fn main()", "#[test]\nfn reads_its_package()");
    let rounds = "std::fs::read(\"Cargo.toml\").unwrap().len() as u64 / 2";
    let test = test.replace(
        "std::env::args().nth(1).map_or(1, |text| text.parse().unwrap())",
        rounds,
    );
    session.write("tests/whole.rs", test.as_bytes());
    let manifest = session.path("Cargo.toml");
    let mut command = cargo_prof(&session, &["--test", "whole", "--manifest-path"]);
    command.arg(&manifest).current_dir(session.path("src"));
    command.args(["-o", "whole.svg"]);
    Outcome::of(command).assert_code(0);
    let svg = std::fs::read_to_string(session.path("src/whole.svg")).unwrap();
    assert!(svg.contains("whole::spin") && !svg.contains("test::run_test"));
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

/// The interface that Criterion and divan share: they list benchmarks, and run the given one.
const BENCH: &str = r#"
#[inline(never)]
fn quick(rounds: u64) -> u64 {
    (0..rounds).fold(1, |x, i| std::hint::black_box(x * 31 + i % 7) % 1_000_003)
}

#[inline(never)]
fn slow(rounds: u64) -> u64 {
    (0..rounds).fold(1, |x, i| std::hint::black_box(x * 37 + i % 5) % 1_000_033)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    assert_eq!(arguments[0], "--bench");
    match arguments[1..].iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--list", "--format", "terse"] => println!("sums/quick: benchmark\nsums/slow: benchmark"),
        ["--exact", "sums/quick"] => println!("{}", quick(100_000_000)),
        ["--exact", "sums/slow"] => println!("{}", slow(100_000_000)),
        other => panic!("{other:?}"),
    }
}
"#;

#[test]
fn each_benchmark_is_recorded_and_compared_with_its_baseline() {
    let session = Session::new();
    package(&session);
    std::fs::create_dir(session.path("benches")).unwrap();
    session.write("benches/sums.rs", BENCH.as_bytes());
    let manifest = format!("{MANIFEST}\n[[bench]]\nname = \"sums\"\nharness = false\n");
    session.write("Cargo.toml", manifest.as_bytes());
    let run = |arguments: &[&str]| {
        let arguments = [&["--bench", "sums"], arguments].concat();
        Outcome::of(cargo_prof(&session, &arguments))
    };
    run(&["--each", "--baseline", "main"]).assert_refused(&["--save-baseline main"]);
    run(&["--each", "--save-baseline", "main"])
        .assert_code(0)
        .assert_says(&["benchmark sums/quick", "benchmark sums/slow"]);
    let folder = session.path("target/prof/sums");
    let quick = std::fs::read_to_string(folder.join("sums_quick/main.svg")).unwrap();
    assert!(quick.contains("sums::quick") && !quick.contains("sums::slow"));
    // Another build: the baseline keeps its names.
    let slower = BENCH.replace("quick(100", "slow(30_000_000) + quick(100");
    session.write("benches/sums.rs", slower.as_bytes());
    // Users of cargo-flamegraph type the last one.
    let limit = ["--fail-above", "5", "--", "--bench"];
    let compared = run(&[&["--each=quick", "--baseline", "main"][..], &limit].concat());
    compared
        .assert_code(3)
        .assert_says(&["sums::slow", " grew from 0.00 %"]);
    assert!(compared.stdout.contains("sums::quick"), "{compared}");
    assert!(!folder.join("sums_slow/new.data").exists());
    run(&["--each=gone"]).assert_refused(&["sums/quick, sums/slow"]);
}

#[test]
fn runners_run_the_program_and_other_machines_are_refused() {
    let session = Session::new();
    package(&session);
    let mut command = cargo_prof(&session, &["--dev", "--", "10"]);
    let variable = format!(
        "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER",
        std::env::consts::ARCH
    );
    command.env(variable.to_uppercase(), "env RUN_BY=runner");
    Outcome::of(command).assert_code(0);
    let folded = Outcome::of(cargo_prof(&session, &["report", "--folded", "-"]));
    assert!(folded.stdout.contains("hello::spin"), "{folded}");
    Outcome::of(cargo_prof(
        &session,
        &["--target", "riscv64gc-unknown-linux-gnu"],
    ))
    .assert_refused(&["do not run on this machine"]);
}

#[test]
fn the_exit_status_is_the_programs() {
    let session = Session::new();
    package(&session);
    let main = "fn main() { std::process::exit(42) }";
    session.write("src/main.rs", main.as_bytes());
    Outcome::of(cargo_prof(&session, &["record", "--dev"])).assert_code(42);
}

#[test]
fn flags_of_cargo_flamegraph_are_accepted_or_explained() {
    let session = Session::new();
    package(&session);
    let run = |arguments: &[&str]| Outcome::of(cargo_prof(&session, arguments));
    run(&[
        "--dev",
        "--root",
        "--deterministic",
        "--no-inline",
        "--ignore-status",
        "-z",
        "-v",
        "-i",
        "--",
        "10",
    ])
    .assert_code(0)
    .assert_says(&[
        "--root is not needed",
        "--compression-level is not needed",
        "-i (--no-inherit) records the first thread only",
    ]);
    run(&["--post-process", "sort"]).assert_refused(&["prof report --folded - | sort"]);
    run(&["-c", "record -F 99"]).assert_refused(&["prof needs no perf"]);
    run(&["--reverse", "--inverted"]).assert_refused(&["cargo prof report"]);
    run(&["--title", "T", "--skip-after", "main"]).assert_refused(&["cargo prof report"]);
    run(&["--cmd", "record -F 99"]).assert_refused(&["prof needs no perf"]);
}

/// Replaces the browser: it writes down the URL.
const XDG_OPEN: &str = "#!/bin/sh\necho \"$1\" >opened\n";

#[test]
fn flags_of_cargo_flamegraph_work_as_there() {
    let session = Session::new();
    package(&session);
    // The library has the binary's name, and both have tests.
    let library = MAIN
        .replace("fn main()", "pub fn unused()")
        .replace("spins", "turns");
    session.write("src/lib.rs", library.as_bytes());
    let browser = session.write("xdg-open", XDG_OPEN.as_bytes());
    std::fs::set_permissions(&browser, Permissions::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = cargo_prof(&session, arguments);
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", session.directory().display());
        command.env("PATH", path).env("DISPLAY", ":0");
        let outcome = Outcome::of(command);
        outcome.assert_code(0);
        std::fs::read_to_string(session.path("flamegraph.svg")).unwrap()
    };
    let inlined = run(&["--open", "--", "100"]);
    let opened = std::fs::read_to_string(session.path("opened")).unwrap();
    assert_eq!(opened, "flamegraph.svg\n");
    // `fold` is a loop in `spin`, by its debug info alone.
    assert!(inlined.contains("hello::spin") && inlined.contains("fold"));
    let bare = run(&[
        "--no-inline",
        "--deterministic",
        "-r",
        "-b",
        "hello",
        "--",
        "100",
    ]);
    assert!(bare.contains("hello::spin") && !bare.contains("fold"));
    // No test of the other one runs.
    let check = |kind: &str, ran: &str, other: &str| {
        let drawn = run(&["--unit-test", "hello", "--unit-test-kind", kind]);
        assert!(drawn.contains(ran) && !drawn.contains(other), "{kind}");
    };
    check("lib", "hello::tests::turns", "hello::tests::spins");
    check("bin", "hello::tests::spins", "hello::tests::turns");
    let dev = run(&[
        "--package-profile",
        "dev",
        "-p",
        "hello",
        "-f",
        "",
        "--",
        "10",
    ]);
    assert!(dev.contains("hello::spin"));
    assert!(session.path("target/debug/hello").exists());
}

#[test]
fn missing_targets_and_failed_builds_are_reported() {
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
