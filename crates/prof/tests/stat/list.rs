//! The output of `prof list`.

use super::{paranoid, perf_is_here, prof, prof_as_user, run, stderr};

#[test]
fn the_list_has_the_events_of_perf() {
    let output = prof(&["list", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut compared = 0;
    for line in text.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = object["kind"].as_str().unwrap();
        if !["Hardware", "Software", "Caches"].contains(&kind) || !perf_is_here() {
            continue;
        }
        let name = object["event"].as_str().unwrap();
        if object["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("happens in the kernel"))
        {
            // perf opens it in user code only, and counts 0.
            continue;
        }
        let theirs = stderr(&run("perf", &["stat", "-x,", "-e", name, "true"]));
        let can = object["count"] != "no";
        assert_eq!(
            can,
            !theirs.contains("<not supported>"),
            "{object} {theirs}"
        );
        assert_eq!(
            object.get("reason").is_none(),
            can && object["sample"] != "no",
            "{object}"
        );
        compared += 1;
    }
    assert!(compared > 40 || !perf_is_here(), "{compared}");
    let none = prof(&["list", "nothing-like-it"]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn a_plain_users_list_has_reasons() {
    let Some(output) = prof_as_user(&["list"]) else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        text.lines()
            .find(|line| line.trim().starts_with(name))
            .unwrap()
    };
    let reason = |name: &str| {
        let mark = line(name).split_whitespace().last().unwrap();
        line(mark)
    };
    assert!(
        line("task-clock").contains("user code") || paranoid() < 2,
        "{text}"
    );
    if paranoid() >= 2 {
        assert!(
            reason("context-switches").contains("happens in the kernel"),
            "{text}"
        );
        assert!(reason("uprobe:").contains("need root"), "{text}");
    }
}
