//! Counting threads separately.

use std::process::Output;

use super::{prof, prof_as_user, stderr};

#[test]
fn threads_are_distinguished() {
    let own = std::process::id().to_string();
    let output = prof(&[
        "stat",
        "--per-thread",
        "-x,",
        "-e",
        "task-clock:u",
        "-d",
        "20ms",
        "-p",
        &own,
    ]);
    let text = stderr(&output);
    let places: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(',').next())
        .collect();
    assert!(
        places.len() > 1
            && places
                .iter()
                .any(|place| place.ends_with(&format!("-{own}"))),
        "{text}"
    );
}

#[test]
fn the_threads_of_a_command_are_distinguished() {
    let script = "ls / >/dev/null; cat /dev/null; exit 5";
    let check = |output: &Output| {
        let text = stderr(output);
        assert_eq!(output.status.code(), Some(5), "{text}");
        for name in ["sh-", "ls-", "cat-"] {
            let line = text
                .lines()
                .find(|line| line.trim().starts_with(name) && line.contains("page-faults:u"));
            let faults = line
                .unwrap_or_else(|| panic!("{name} {text}"))
                .split_whitespace()
                .nth(1)
                .unwrap();
            assert!(
                faults.replace(',', "").parse::<u64>().unwrap() > 20,
                "{text}"
            );
        }
        assert!(text.contains("seconds time elapsed"), "{text}");
    };
    let arguments = [
        "stat",
        "--per-thread",
        "-e",
        "task-clock:u,page-faults:u",
        "--",
        "sh",
        "-c",
        script,
    ];
    check(&prof(&arguments));
    if let Some(output) = prof_as_user(&arguments) {
        check(&output);
    }
    let missing = prof(&["stat", "--per-thread", "no-such-command"]);
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn threads_of_repeated_runs_are_added_up_by_name() {
    let script = "ls / >/dev/null; ls / >/dev/null; true";
    let arguments = ["-x,", "-e", "page-faults:u", "--", "sh", "-c", script];
    let output = prof(&[&["stat", "--per-thread", "-r3"][..], &arguments].concat());
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let [ls, sh] = lines[..] else {
        panic!("{text}");
    };
    // Name, mean, unit, event, spread.
    let field = |line: &str, index| line.split(',').nth(index).map(str::to_owned);
    assert_eq!(field(ls, 0).as_deref(), Some("ls"), "{text}");
    assert_eq!(field(sh, 0).as_deref(), Some("sh"), "{text}");
    let faults: f64 = field(ls, 1).unwrap().parse().unwrap();
    assert!(faults > 80.0, "two processes: {text}");
    assert!(field(ls, 4).unwrap().ends_with('%'), "{text}");
}

#[test]
fn flags_that_exclude_counts_of_threads_are_refused() {
    for (flag, words) in [("-I10", "-p PID"), ("-i", "only the first thread")] {
        let output = prof(&["stat", "--per-thread", flag, "--", "echo", "started"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(words), "{output:?}");
        assert_eq!(output.stdout, b"");
    }
}
