//! Texts for people and scripts, kept in files.

use super::super::{csv, json, script};
use super::written;
use crate::calltree::{CallTree, Split};
use crate::testing::{check_golden, demo, everything};
use crate::view::flat::Flat;

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
    let text = written(|out| Ok(json::write(&tree, &flat, out)?));
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    check_golden("report.json", format!("{value:#}\n").as_bytes());
}

/// docs/json.md is what scripts are written by.
#[test]
fn every_member_is_documented() {
    let documentation = include_str!("../../../../../docs/json.md");
    let text = include_str!("../../../tests/golden/report.json");
    let mut pending = vec![serde_json::from_str::<serde_json::Value>(text).unwrap()];
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
