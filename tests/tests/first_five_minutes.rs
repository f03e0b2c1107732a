//! The mishaps that drive people away from a profiler in their first five minutes do not happen.
//! README.md links here.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use prof_tests::{Compiler, Outcome, Program, Session};

const THREADS: Program = Program::new(&["threads.c"], Compiler::Gcc, &["-pthread"]);

/// The launcher of commands that must find no other program.
fn no_programs() -> [OsString; 2] {
    ["env", "PATH=/nonexistent"].map(OsString::from)
}

/// perf 6 starts addr2line for each address; with debug info of tens of megabytes, that takes
/// hours.
#[test]
fn reports_start_no_other_program() {
    let session = Session::new();
    session.record(&["-e", "cpu-clock:u"], &[THREADS.build()]);
    Outcome::of(session.prof_under(&no_programs(), ["report"])).assert_code(0);
}

#[test]
fn stacks_do_not_break_in_silence() {
    let session = Session::new();
    // As deep as the kernel's dumps, and deeper.
    let deep = Program::new(&["deep.c"], Compiler::Gcc, &[]).build();
    let options = [
        "--no-unwind",
        "--call-graph",
        "dwarf,512",
        "-e",
        "cpu-clock:u",
    ];
    let command = [deep.as_os_str(), "200".as_ref()];
    session.record(&options, &command);
    let report = session.run(["report"]);
    report.assert_code(0);
    let said = format!("{}{}", report.stdout, report.stderr);
    assert!(said.contains("verdict: BAD"), "{report}");
    assert!(said.contains("--call-graph dwarf"), "the remedy: {report}");
}

#[test]
fn perf_is_not_needed() {
    let session = Session::new();
    let mut record = session.prof_under(&no_programs(), ["record", "--flamegraph", "out.svg"]);
    record.arg(THREADS.build());
    Outcome::of(record).assert_code(0);
    assert!(session.path("out.svg").exists());
}

#[test]
fn permissions_are_read_by_trying() {
    let session = Session::new();
    let doctor = session.run(["doctor"]);
    doctor.assert_code(0);
    let record = session.run(["record", "--", "true"]);
    record.assert_code(0);
    // Its advice fits this machine: it never advises root to become root.
    assert!(!doctor.stdout.contains("sudo"), "{doctor}");
}

#[test]
fn waits_are_shown() {
    let session = Session::new();
    session.record(&["--off-cpu"], &["sh", "-c", "sleep 0.3"]);
    let report = session.run(["report", "--folded", "-"]);
    report.assert_code(0);
    let waited: u64 = report
        .stdout
        .lines()
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum();
    assert!(waited >= 290_000_000, "{report}");
}

#[test]
fn the_viewer_needs_no_network() {
    let session = Session::new();
    session.record(&["--html", "page.html"], &[THREADS.build()]);
    let page = fs::read_to_string(session.path("page.html")).unwrap();
    for loads in [
        "<script src",
        "<link ",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn recordings_are_compared() {
    let session = Session::new();
    let program = THREADS.build();
    session.record(&["-o", "before.data"], &[&program]);
    session.record(&["-o", "after.data"], &[&program]);
    let diff = session.run(["diff", "before.data", "after.data"]);
    diff.assert_code(0);
    assert!(diff.stdout.contains("Certainty"), "{diff}");
}

/// A release build has no debug info, and `strip = true` takes the names, too; cargo prof builds
/// with both, and edits nothing.
#[test]
fn stripped_release_profiles_have_lines() {
    let session = Session::new();
    fs::create_dir(session.path("src")).unwrap();
    let manifest = "[package]\nname = \"plain\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                    [profile.release]\nstrip = true\n[workspace]\n";
    session.write("Cargo.toml", manifest.as_bytes());
    let main = "#[inline(never)]\nfn work() -> u64 {\n    (0..200_000_000_u64).fold(1, |x, i| \
                std::hint::black_box(x ^ i))\n}\n\nfn main() {\n    println!(\"{}\", work());\n}\n";
    session.write("src/main.rs", main.as_bytes());
    let cargo_prof = prof_tests::prof().with_file_name("cargo-prof");
    let mut command: Command = session.command(&cargo_prof, ["prof", "record"]);
    command.env("CARGO_TARGET_DIR", session.path("target"));
    Outcome::of(command).assert_code(0);
    let lines = session.run(["annotate", "plain::work"]);
    lines.assert_code(0);
    assert!(lines.stdout.contains("fold(1,"), "{lines}");
    let kept = fs::read_to_string(session.path("Cargo.toml")).unwrap();
    assert_eq!(kept, manifest);
}

#[test]
fn the_readme_names_each_of_these_tests() {
    let readme = include_str!("../../README.md");
    let named = |line: &&str| line.starts_with("| ") && line.ends_with("` |");
    let named = readme.lines().filter(named);
    let named: Vec<&str> = named.filter_map(|line| line.split('`').nth(1)).collect();
    let own = include_str!("first_five_minutes.rs").lines();
    let own = own.filter_map(|line| line.strip_prefix("fn ")?.strip_suffix("() {"));
    let own: Vec<&str> = own.filter(|name| !name.contains("readme")).collect();
    assert_eq!(named, own);
}
