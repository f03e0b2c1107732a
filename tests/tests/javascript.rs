//! Functions of Node have names that are read from its memory, also where nothing was set for it.

use std::path::Path;

use prof_tests::{Need, Session, Stacks, USER_CODE, needs, spawn_ready};

use crate::runtimes::nodes;

/// The letter and the number of a function of `callers.js`.
fn caller(frame: &str) -> Option<(char, char)> {
    let name = frame.strip_prefix("JS:")?.split(' ').next()?;
    let mut name = name.chars();
    match (name.next()?, name.next()?, name.next()) {
        (letter @ ('m' | 'f' | 'n'), number @ '0'..='9', None) => Some((letter, number)),
        _ => None,
    }
}

/// Whether a frame is of JavaScript, if with a name.
fn has_name(frame: &str) -> Option<bool> {
    match frame {
        "[jit]" | "Builtins_InterpreterEntryTrampoline" => Some(false),
        _ => frame.starts_with("JS:").then_some(true),
    }
}

/// No function has the caller of another one, and nearly all functions have names.
#[track_caller]
fn assert_callers(stacks: &Stacks) {
    let (mut calls, mut total, mut unnamed) = (0, 0, 0);
    for (frames, weight) in stacks.iter() {
        let names: Vec<bool> = frames.iter().filter_map(|frame| has_name(frame)).collect();
        if names.is_empty() {
            continue;
        }
        total += weight;
        unnamed += if names.contains(&false) { weight } else { 0 };
        let functions: Vec<&String> = frames
            .iter()
            .filter(|frame| has_name(frame).is_some())
            .collect();
        for pair in functions.windows(2) {
            let Some((letter, number)) = caller(pair[1]).filter(|it| it.0 != 'm') else {
                continue;
            };
            // V8 inlines functions; the arrow functions have the numbers of their functions' calls.
            let Some(above) = caller(pair[0]) else {
                continue;
            };
            assert_eq!(above.1, number, "{letter}{number}: {frames:?}");
            calls += weight;
        }
    }
    assert!(calls * 20 > total, "{calls} calls, {total}: {stacks}");
    assert!(unnamed * 20 < total, "{unnamed} of {total}: {stacks}");
}

#[test]
fn functions_of_a_running_node_have_names_and_callers() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    for node in nodes() {
        for session in [Session::new, Session::plain_user] {
            let session = session();
            session.write("callers.js", include_bytes!("../programs/callers.js"));
            let mut running = spawn_ready(session.command(&node, ["callers.js"]));
            let pid = running.id().to_string();
            let options = ["-F", "999", "-e", "cpu-clock:u", "-d", "3", "-p", &pid];
            let outcome = session.run([&["record"], &options[..]].concat());
            outcome.assert_code(0);
            drop(running.stdin.take());
            assert!(running.wait().unwrap().success());
            let map = format!("/tmp/perf-{pid}.map");
            assert!(!Path::new(&map).exists(), "{map} remains");
            let report = session.run(["report", "--folded", "-"]);
            let stacks = Stacks::from_folded(&report.stdout);
            stacks.assert_whole(0.98);
            assert_callers(&stacks);
        }
    }
}

#[test]
fn functions_of_a_running_node_have_names_in_top() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    session.write("callers.js", include_bytes!("../programs/callers.js"));
    let mut running = spawn_ready(session.command(Path::new("node"), ["callers.js"]));
    let pid = running.id().to_string();
    let options = [
        "--stdio",
        "--iterations",
        "3",
        "-e",
        "cpu-clock:u",
        "-p",
        &pid,
    ];
    let outcome = session.run([&["top"], &options[..]].concat());
    outcome.assert_code(0);
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
    let names: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert!(names.iter().any(|name| caller(name).is_some()), "{outcome}");
}

/// The interpreter's code is the same for all functions: their frames tell them apart.
#[test]
fn interpreted_functions_of_node_have_names() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let hot = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/hot.js");
    for node in nodes() {
        let session = Session::new();
        let options = [&["record", "--no-runtime-help"], USER_CODE, &["--"]].concat();
        let node = node.to_str().unwrap();
        let command = [node, "--no-opt", "--no-sparkplug", hot.to_str().unwrap()];
        let outcome = session.run([&options[..], &command].concat());
        outcome.assert_code(7);
        assert!(!outcome.stderr.contains("kept"), "{outcome}");
        let report = session.run(["report", "--folded", "-"]);
        let stacks = Stacks::from_folded(&report.stdout);
        let within = |function: &str| {
            let named = |frame: &String| frame.starts_with(&format!("JS:{function} "));
            stacks.share(|frames| frames.iter().any(named))
        };
        let (light, heavy) = (within("light"), within("heavy"));
        assert!(
            light + heavy > 0.8 && heavy > light,
            "{light} {heavy}: {stacks}"
        );
        // With the place in the source.
        let place = |frame: &String| frame.contains("programs/hot.js:9:15");
        assert!(
            stacks.share(|frames| frames.iter().any(place)) > 0.4,
            "{stacks}"
        );
    }
}
