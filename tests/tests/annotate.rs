//! Source lines and instructions, beside those of `perf annotate`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use prof_tests::{Need, Outcome, Program, Recorded, Session, USER_CODE, needs};

const INLINING: Program = Program::cpp(&["inlining.cpp"]);

fn annotate(session: &Session, options: &[&str]) -> Outcome {
    session.run(["annotate"].iter().chain(options))
}

/// The self percentage of each address, of lines that begin with these two columns.
fn shares(text: &str, percentage: usize, address: usize) -> BTreeMap<u64, f64> {
    let share = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let share: f64 = words.get(percentage)?.parse().ok()?;
        let address = words.get(address)?.trim_end_matches(':');
        Some((u64::from_str_radix(address, 16).ok()?, share))
    };
    text.lines()
        .filter_map(share)
        .filter(|(_, share)| *share > 0.0)
        .collect()
}

/// The total of a line of a listing, in percent.
pub(crate) fn total_at_line(listing: &str, number: &str) -> Option<f64> {
    let mut rows = listing.lines();
    rows.find_map(|row| {
        // Before the number are the total in percent and in time.
        let words: Vec<_> = row.split_whitespace().take(5).collect();
        let at = words.iter().rposition(|&word| word == number)?;
        words.get(at.checked_sub(2)?)?.parse().ok()
    })
}

fn perf_annotate(recorded: &Recorded<'_>, function: &str) -> Outcome {
    let mut perf = Command::new("perf");
    perf.args(["annotate", "--stdio", "-s", function, "-i"])
        .arg(&recorded.file)
        .env("HOME", "/nonexistent");
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    outcome
}

#[test]
fn instructions_weigh_what_perf_says() {
    if !needs(&[Need::Tool("perf"), Need::Tool("objdump")]) {
        return;
    }
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[Program::c(&["mixed.c"]).build()]);
    let outcome = annotate(&session, &["divide", "--asm"]);
    outcome.assert_code(0);
    // perf's shares are of the function, ours of everything.
    let all = shares(&outcome.stdout, 0, 4);
    let sum: f64 = all.values().sum();
    let ours = all.iter().map(|(address, share)| (*address, share / sum));
    let perf = perf_annotate(&recorded, "divide");
    let theirs = shares(&perf.stdout, 0, 2);
    assert!(theirs.len() > 3, "{perf}");
    let ours: BTreeMap<u64, f64> = ours.collect();
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>(),
        "{outcome}\n{perf}"
    );
    for (address, share) in ours {
        let difference = (share * 100.0 - theirs[&address]).abs();
        // Both round to two decimals, we before the division.
        assert!(difference < 0.1, "{address:#x}: {outcome}\n{perf}");
    }
}

#[test]
fn inlined_code_belongs_to_its_own_function_and_file() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    session.record(USER_CODE, &[INLINING.build()]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/inlining.cpp");
    let source = std::fs::read_to_string(source).unwrap();
    let call = "return innermost(scale * Sides);";
    assert!(source.contains(call));
    // The call line has hardly a weight of its own, and nearly all of it in total.
    let outcome = annotate(&session, &["inlining.cpp"]);
    let line = |text: &str| {
        let found = outcome.stdout.lines().find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no {text}: {outcome}"))
    };
    let words = line(call).split_whitespace();
    let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
    // Before the total there may be its own; after it come its milliseconds and the line.
    let total = numbers.len().checked_sub(3).map(|at| numbers[at]);
    assert!(total.is_some_and(|total| total > 95.0), "{outcome}");
    // The loop is in the header that the function comes from.
    let outcome = annotate(&session, &["burn.h"]);
    let first = outcome
        .stdout
        .lines()
        .find(|line| line.contains("burn.h: self"));
    let share = first.and_then(|line| line.split(['(', ' ']).filter_map(|w| w.parse().ok()).nth(1));
    let share: f64 = share.unwrap_or_else(|| panic!("{outcome}"));
    assert!(share > 95.0, "{outcome}");
    // So are functions inlined there, seen as instructions.
    let outcome = annotate(&session, &["shapes::innermost", "--asm=intel"]);
    for text in ["Polygon<9>::area", "burn (inlined)", "imul   rax,"] {
        assert!(outcome.stdout.contains(text), "no {text}: {outcome}");
    }
}

/// The code is in the jitdump that the program leaves, whether it still runs or not.
#[test]
fn code_made_at_run_time_is_disassembled() {
    let session = Session::new();
    let program = Program::c(&["jit.c"]).build();
    let directory = session.directory().to_str().unwrap();
    session.record(USER_CODE, &[program.to_str().unwrap(), "300", directory]);
    let outcome = annotate(&session, &["function_in_a_jitdump", "--asm"]);
    outcome.assert_code(0);
    for instruction in ["imul   %rax,%rax", "dec    %rdi", "jne    0x"] {
        assert!(outcome.stdout.contains(instruction), "{outcome}");
    }
    // Every sample is in one of the three instructions of the loop.
    let shares = shares(&outcome.stdout, 0, 4);
    let sum: f64 = shares.values().sum();
    assert!(shares.len() <= 3 && sum > 95.0, "{shares:?} {outcome}");
}

#[test]
fn the_source_is_found_where_it_went() {
    let session = Session::new();
    let source = "#include <stdint.h>\nuint64_t n;\nint main() {\n    for (n = 0; n < 100000000; \
                  n++)\n        asm volatile(\"\" ::: \"memory\");\n}\n";
    let path = session.write("moved.c", source.as_bytes());
    let mut gcc = session.command(Path::new("gcc"), ["-g", "-O1", "-o", "moved"]);
    gcc.arg(&path);
    Outcome::of(gcc).assert_code(0);
    session.record(USER_CODE, &["./moved"]);
    let with_source = |options: &[&str]| {
        let mut arguments = vec!["main"];
        arguments.extend(options);
        let outcome = annotate(&session, &arguments);
        outcome.assert_code(0);
        (outcome.stdout.contains("for (n = 0;"), outcome)
    };
    assert!(with_source(&[]).0);
    std::fs::create_dir(session.path("new")).unwrap();
    std::fs::rename(&path, session.path("new/moved.c")).unwrap();
    let (found, outcome) = with_source(&[]);
    assert!(!found, "{outcome}");
    let tried = format!("no source: {} (not there)", path.display());
    assert!(outcome.stdout.contains(&tried), "{outcome}");
    assert!(outcome.stdout.contains("--source-path"), "{outcome}");
    // Line numbers keep their weights.
    let is_line = |line: &str| line.split_whitespace().collect::<Vec<_>>().len() == 5;
    assert!(outcome.stdout.lines().any(is_line), "{outcome}");
    assert!(with_source(&["--source-path", "new"]).0);
    let map = format!(
        "{}={}",
        session.directory().display(),
        session.path("new").display()
    );
    assert!(with_source(&["--source-map", &map]).0);
}

#[test]
fn unknown_names_get_suggestions() {
    let session = Session::new();
    let binary = Program::c(&["shares.c"]).build();
    let recorded = session.record(USER_CODE, &[binary.to_str().unwrap(), "200"]);
    annotate(&session, &["burn_sxity"]).assert_refused(&["burn_sxity", "did you mean burn_sixty"]);
    annotate(&session, &["burn_("]).assert_refused(&["not a regular expression"]);
    annotate(&session, &["main", "--tid", "1"])
        .assert_refused(&["the filters leave out all samples"]);
    // A function that ran, but not on the stacks that are left.
    annotate(&session, &["burn_ten", "--function", "burn_sixty"])
        .assert_refused(&["no function on the stacks shown matches 'burn_ten"]);
    let file = recorded.file.to_str().unwrap();
    for option in ["--callers", "--callees"] {
        session
            .run(["report", "-i", file, option, "burn_sxity"])
            .assert_refused(&["did you mean burn_sixty"]);
    }
}
