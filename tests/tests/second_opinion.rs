//! Copies of stacks by prof's unwinder and by framehop: `--check-stacks`, `--unwinder`.

use std::path::{Path, PathBuf};

use prof_tests::{Need, Program, Session, USER_CODE, needs, perf_record};
use serde_json::Value;

const DUMPS: &[&str] = &["--call-graph", "dwarf,16384"];

/// The result of `--check-stacks` for a recording of this command by perf.
fn check(session: &Session, command: &[&Path]) -> (PathBuf, Value) {
    let file = session.path("perf.data");
    perf_record(DUMPS, &file, command);
    let input = file.to_str().unwrap();
    let outcome = session.run(["report", "-i", input, "--check-stacks", "--json", "-"]);
    outcome.assert_code(0);
    (file, serde_json::from_str(&outcome.stdout).unwrap())
}

fn share(found: &Value, count: &Value) -> f64 {
    count.as_f64().unwrap() / found["stacks"].as_f64().unwrap()
}

#[test]
fn programs_with_tables_have_the_same_stacks() {
    const QUERY: &str = "with recursive c(x) as (select 1 union all select x + 1 from c \
                         where x < 1000000) select count(*), sum(x * x % 7) from c;";
    if !needs(&[Need::Tool("perf"), Need::Tool("sqlite3")]) {
        return;
    }
    let session = Session::new();
    let command = ["sqlite3", ":memory:", QUERY].map(Path::new);
    let (_, found) = check(&session, &command);
    assert!(found["stacks"].as_u64().unwrap() > 50, "{found}");
    let same = share(&found, &found["same"]) + share(&found, &found["same_frames"]);
    assert!(same > 0.97, "{found}");
    assert!(share(&found, &found["whole"]["prof"]) > 0.97, "{found}");
}

#[test]
fn stacks_that_framehop_cannot_follow_are_listed() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let program = Program::c(&["signals.c"]).build();
    let (file, found) = check(&session, &[&program, Path::new("normal"), Path::new("200")]);
    // The trampoline that a signal handler returns to describes its caller's registers by
    // expressions that read memory.
    let difference = &found["differences"][0];
    assert!(share(&found, &difference["stacks"]) > 0.5, "{found}");
    let module = difference["module"].as_str().unwrap();
    assert!(module.ends_with("libc.so.6"), "{found}");
    assert!(difference["prof"]["caller"]["offset"].is_u64(), "{found}");
    assert!(share(&found, &found["whole"]["prof"]) > 0.9, "{found}");
    assert!(share(&found, &found["whole"]["framehop"]) < 0.5, "{found}");

    let report = |options: &[&str]| {
        let arguments = ["report", "-i", file.to_str().unwrap()];
        let outcome = session.run(arguments.iter().chain(options));
        outcome.assert_code(0);
        outcome.stdout
    };
    let text = report(&["--check-stacks"]);
    let place = format!("{module}+{:#x}", difference["offset"].as_u64().unwrap());
    assert!(text.contains(&place), "{text}");
    let by_prof = report(&["--folded", "-"]);
    assert_eq!(by_prof, report(&["--folded", "-", "--unwinder", "prof"]));
    assert!(by_prof.contains("main;"), "{by_prof}");
    let by_framehop = report(&["--folded", "-", "--unwinder", "framehop"]);
    assert!(by_framehop.contains("in_handler"), "{by_framehop}");
    assert_ne!(by_prof, by_framehop);
}

#[test]
fn there_must_be_copies_of_stacks() {
    let session = Session::new();
    let program = Program::c(&["shares.c"]).build();
    let command = [program.to_str().unwrap(), "50"];
    let unwound = session.record(USER_CODE, &command);
    unwound.report(&["--unwinder", "prof"]);
    let file = unwound.file.to_str().unwrap();
    for options in [&["--check-stacks"][..], &["--unwinder", "framehop"]] {
        let outcome = session.run(["report", "-i", file].iter().chain(options));
        outcome.assert_refused(&["no stack dumps", "--no-unwind"]);
    }
    let copied = [USER_CODE, &["--no-unwind", "-o", "copied.data"]].concat();
    session.record(&copied, &command);
    let outcome = session.run(["report", "-i", "copied.data", "--check-stacks"]);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("in prof and framehop"), "{outcome}");
}
