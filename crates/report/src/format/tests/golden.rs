//! Texts for people and scripts, kept in files.

use super::super::{csv, json, script};
use super::written;
use crate::calltree::{CallTree, Split};
use crate::source::Sources;
use crate::testing::{
    TestProfile, check_golden, demo, demo_with_failures, demo_with_stack_check, everything,
};
use crate::view::annotate::{Annotation, Wanted};
use crate::view::diff::{Basis, Diff};
use crate::view::flat::Flat;
use crate::view::stack_check::NamedStackCheck;
use crate::view::timeline::Timeline;

#[test]
fn perf_script_text() {
    let text = written(|out| script::write(&demo(), &everything(), out));
    check_golden("script.txt", &text);
}

#[test]
fn table_and_tree() {
    let symbolized = demo();
    let tree = CallTree::new(&symbolized, &everything(), Split::Thread).unwrap();
    let flat = Flat::new(&tree);
    check_golden(
        "flat.csv",
        &written(|out| Ok(csv::write(&tree, &flat, out)?)),
    );
    let text = written(|out| Ok(json::calls(&tree, json::CallView::Calls, out)?));
    check_json("report.json", &text);
}

#[test]
fn other_views() {
    let symbolized = demo();
    let annotation = Annotation::new(
        &symbolized,
        &everything(),
        Wanted::Named("^(main|ns::inner)$"),
    );
    let text = written(|out| {
        let annotation = annotation?;
        Ok(json::annotation(
            &annotation,
            None,
            &Sources::default(),
            out,
        )?)
    });
    check_json("annotation.json", &text);
    let text = written(|out| Ok(json::failures(&demo_with_failures(), out)?));
    check_json("failures.json", &text);
    let checked = demo_with_stack_check();
    let found = NamedStackCheck::new(&checked).unwrap();
    let text = written(|out| Ok(json::stack_check(&checked, &found, out)?));
    check_json("stack_check.json", &text);
    let timeline = Timeline::new(&symbolized, &everything(), Split::Thread, 3).unwrap();
    let text = written(|out| Ok(json::timeline(&timeline, out)?));
    check_json("timeline.json", &text);
    let after = TestProfile::of(&["demo _start;main;compute 300", "demo _start;main;new 300"]);
    let tree = |symbolized| CallTree::new(symbolized, &everything(), Split::Name);
    let text = written(|out| {
        let (before, after) = (tree(&symbolized)?, tree(&after)?);
        let diff = Diff::new(&before, &after, Basis::Weight)?;
        Ok(json::diff(&before, &after, &diff, out)?)
    });
    check_json("diff.json", &text);
}

fn check_json(name: &str, text: &[u8]) {
    let value: serde_json::Value = serde_json::from_slice(text).unwrap();
    check_golden(name, format!("{value:#}\n").as_bytes());
}

/// Scripts rely on docs/json.md.
#[test]
fn every_member_is_documented() {
    let documentation = include_str!("../../../../../docs/json.md");
    let texts = [
        include_str!("../../../tests/golden/report.json"),
        include_str!("../../../tests/golden/annotation.json"),
        include_str!("../../../tests/golden/failures.json"),
        include_str!("../../../tests/golden/stack_check.json"),
        include_str!("../../../tests/golden/timeline.json"),
        include_str!("../../../tests/golden/diff.json"),
    ];
    let values = texts.iter().map(|text| serde_json::from_str(text).unwrap());
    let mut pending: Vec<serde_json::Value> = values.collect();
    while let Some(value) = pending.pop() {
        match value {
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    let named = [format!("`{name}`"), format!("\"{name}\": ")];
                    let is_named = named.iter().any(|named| documentation.contains(named));
                    assert!(is_named, "docs/json.md is silent about {name}");
                    pending.push(value);
                }
            }
            serde_json::Value::Array(values) => pending.extend(values),
            _ => {}
        }
    }
}
