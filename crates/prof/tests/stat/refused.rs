//! Fallbacks, and refusals.

use super::{line_of, paranoid, prof, prof_as_user, stderr};

#[test]
fn mistakes_are_said_before_anything_runs() {
    let check = |arguments: &[&str], expected: &str| {
        let output = prof(&[&["stat"], arguments, &["echo", "it ran"]].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(
            stderr(&output).contains(expected),
            "{arguments:?}: {}",
            stderr(&output)
        );
    };
    check(
        &["-e", "instructions,cycels"],
        "did you mean cycles?\n  instructions,cycels\n               ^^^^^^",
    );
    check(&["-e", "nopmu/event=1/"], "no PMU \"nopmu\"");
    check(
        &["-e", "uprobe:/bin/sh:no_such_function"],
        "has no function",
    );
    check(&["-e", "99:0"], "no PMU has that type");
    check(&["-e", ""], "an event's name is missing");
}

#[test]
fn a_plain_user_gets_the_available_events() {
    let Some(output) = prof_as_user(&["stat", "--", "sh", "-c", "ls / >/dev/null"]) else {
        return;
    };
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    let value = |name: &str| -> f64 {
        line_of(&text, name)
            .split_whitespace()
            .next()
            .unwrap()
            .replace(',', "")
            .parse()
            .unwrap()
    };
    assert!(value("task-clock") > 0.0, "{text}");
    // The shell waits for ls: that is a switch, which this user's counters do not see.
    assert!(value("context-switches") > 0.0, "{text}");
    if paranoid() >= 2 {
        assert!(value("page-faults:u") > 0.0, "{text}");
        assert!(text.contains("getrusage"), "{text}");
        assert!(
            !text.contains("cycles ") || text.contains("cycles:u "),
            "{text}"
        );
        let refused = prof_as_user(&["stat", "-e", "cpu-migrations", "true"]).unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            stderr(&refused).contains("happens in the kernel"),
            "{refused:?}"
        );
        let refused = prof_as_user(&["stat", "-a", "true"]).unwrap();
        assert!(
            stderr(&refused).contains("perf_event_paranoid=0"),
            "{refused:?}"
        );
        let zero = prof_as_user(&["stat", "-e", "cs:u", "true"]).unwrap();
        assert!(stderr(&zero).contains("cs:u is always 0"), "{zero:?}");
    }
}
