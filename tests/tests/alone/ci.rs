//! `prof ci` on two builds of a program.

use std::fs;

use prof_tests::{Outcome, Session};

/// A program that spends these milliseconds in `parse` and in `render`: chains of multiplications,
/// which take the same time in each run.
fn program(session: &Session, parse: u32, render: u32) {
    session.write(
        "program.c",
        b"#define BURN(ms) \\\n\
              unsigned long x = ms; \\\n\
              for (unsigned long i = 0; i < ms * 1100000ul; i++) { \\\n\
                  x = x * 6364136223846793005u + 1; \\\n\
                  __asm__ volatile(\"\" : \"+r\"(x)); \\\n\
              }\n\
          __attribute__((noinline)) void parse(void) { BURN(PARSE) }\n\
          __attribute__((noinline)) void render(void) { BURN(RENDER) }\n\
          int main(void) { parse(); render(); return 0; }\n",
    );
    let mut build = session.command("gcc".as_ref(), ["-O1", "-g", "-o", "program", "program.c"]);
    build.arg(format!("-DPARSE={parse}"));
    build.arg(format!("-DRENDER={render}"));
    Outcome::of(build).assert_code(0);
}

fn ci(session: &Session, options: &[&str]) -> Outcome {
    let fixed = ["ci", "--repeat", "4", "-F", "3999", "-e", "cpu-clock:u"];
    session.run([&fixed, options, &["--", "./program"]].concat())
}

#[test]
fn a_function_that_grew_is_named() {
    let session = Session::new();
    program(&session, 50, 100);
    ci(&session, &[]).assert_refused(&["prof ci --save-baseline"]);
    ci(&session, &["--save-baseline"]).assert_code(0);
    // Compare shares only: the total time also depends on other load on the machine.
    let same = ci(&session, &["--fail-above", "1:."]);
    same.assert_code(0);
    assert!(
        same.stdout.starts_with("## prof ci: nothing grew"),
        "{same}"
    );
    program(&session, 100, 100);
    let slower = ci(&session, &[]);
    slower.assert_code(3);
    assert!(
        slower.stdout.starts_with("## prof ci: parse grew"),
        "{slower}"
    );
    let row = slower
        .stdout
        .lines()
        .find(|line| line.contains("| parse |"));
    assert!(row.is_some_and(|row| row.contains("**grew**")), "{slower}");
    // Only the selected functions count.
    ci(&session, &["--fail-above", "1:render"]).assert_code(0);
}

/// Its share is 100 % before and after.
#[test]
fn a_program_of_one_function_that_takes_longer_fails() {
    let session = Session::alone();
    program(&session, 100, 0);
    ci(&session, &["--save-baseline"]).assert_code(0);
    let limit = ["--fail-above", "50"];
    let same = ci(&session, &limit);
    same.assert_code(0);
    assert!(
        same.stdout.starts_with("## prof ci: nothing grew"),
        "{same}"
    );
    program(&session, 200, 0);
    let slower = ci(&session, &limit);
    slower.assert_code(3);
    assert!(
        slower.stdout.starts_with("## prof ci: a run costs "),
        "{slower}"
    );
    let cost = slower
        .stdout
        .lines()
        .find(|line| line.starts_with("- cost of a run: +"));
    assert!(
        cost.is_some_and(|line| line.ends_with(": **grew**")),
        "{slower}"
    );
    // A limit for functions says nothing of whole runs.
    ci(&session, &["--fail-above", "1:."]).assert_code(0);
}

/// With both programs, the runs alternate, and no baseline is needed.
#[test]
fn two_builds_are_compared_run_by_run() {
    let session = Session::alone();
    program(&session, 50, 100);
    fs::copy(session.path("program"), session.path("before")).unwrap();
    let same = ci(&session, &["--versus", "./before", "--fail-above", "1:."]);
    same.assert_code(0);
    assert!(
        same.stdout.starts_with("## prof ci: nothing grew"),
        "{same}"
    );
    program(&session, 100, 100);
    let slower = ci(&session, &["--versus", "./before"]);
    slower.assert_code(3);
    assert!(
        slower.stdout.starts_with("## prof ci: parse grew"),
        "{slower}"
    );
    assert!(
        slower.stdout.contains("before (./before): 4 runs"),
        "{slower}"
    );
    let started = |directory: &str, run: u32| {
        let recording = session.path(&format!("prof-ci/{directory}/{run:04}.data"));
        fs::metadata(recording).unwrap().modified().unwrap()
    };
    // Each pair follows the one before, the other program first.
    assert!(started("versus", 1) < started("new", 1));
    assert!(started("new", 1) < started("new", 2));
    assert!(started("new", 2) < started("versus", 2));
    assert!(started("versus", 2) < started("versus", 3));
}

#[test]
fn errors_are_passed_on() {
    let session = Session::new();
    let failing = session.run(["ci", "--save-baseline", "--", "sh", "-c", "exit 7"]);
    failing.assert_code(7);
    let gone = session.run(["ci", "--save-baseline", "--", "./gone"]);
    gone.assert_code(127);
    session
        .run(["ci", "--versus", "./gone", "--", "true"])
        .assert_code(127);
}

#[test]
fn a_failed_run_leaves_the_baseline_as_it_was() {
    let session = Session::new();
    // The fourth run fails.
    let program = "echo >>runs; test $(wc -l <runs) != 4";
    let save = || {
        let options = ["ci", "--repeat", "2", "--save-baseline"];
        session.run([&options[..], &["--", "sh", "-c", program]].concat())
    };
    let files = || {
        let entries = fs::read_dir(session.path("prof-ci/baseline")).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| {
                let entry = entry.unwrap();
                (
                    entry.file_name(),
                    entry.metadata().unwrap().modified().unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    save().assert_code(0);
    let saved = files();
    assert_eq!(saved.len(), 2);
    save().assert_code(1).assert_says(&["run 2 of sh"]);
    assert_eq!(files(), saved);
}
