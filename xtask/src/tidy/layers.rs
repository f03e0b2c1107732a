//! The layers of crates: which may know which. docs/architecture.md lists them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Problem;

/// Each package with the packages of ours that it depends on; it may depend on no others.
///
/// `prof-recorder` and `prof-report` must never depend on each other, not even in their tests: they
/// share only recordings.
const LAYERS: [(&str, &[&str]); 19] = [
    ("prof-model", &[]),
    ("prof-procfs", &[]),
    ("prof-filemap", &["prof-procfs"]),
    (
        "prof-events",
        &["prof-model", "prof-filemap", "prof-procfs"],
    ),
    (
        "prof-counters",
        &["prof-model", "prof-events", "prof-procfs"],
    ),
    ("prof-perfdata", &["prof-model", "prof-filemap"]),
    ("prof-unwinder", &["prof-model", "prof-procfs"]),
    ("prof-runtimes", &["prof-model"]),
    (
        "prof-symbols",
        &["prof-model", "prof-filemap", "prof-procfs"],
    ),
    ("prof-console", &["prof-model", "prof-events"]),
    (
        "prof-recorder",
        &[
            "prof-model",
            "prof-filemap",
            "prof-procfs",
            "prof-events",
            "prof-perfdata",
            "prof-unwinder",
            "prof-runtimes",
        ],
    ),
    (
        "prof-report",
        &[
            "prof-model",
            "prof-filemap",
            "prof-procfs",
            "prof-perfdata",
            "prof-symbols",
            "prof-unwinder",
        ],
    ),
    (
        "prof-fleet",
        &[
            "prof-console",
            "prof-model",
            "prof-filemap",
            "prof-procfs",
            "prof-events",
            "prof-perfdata",
            "prof-symbols",
            "prof-recorder",
            "prof-report",
        ],
    ),
    (
        "prof",
        &[
            "prof-console",
            "prof-model",
            "prof-filemap",
            "prof-procfs",
            "prof-events",
            "prof-counters",
            "prof-perfdata",
            "prof-symbols",
            "prof-recorder",
            "prof-report",
        ],
    ),
    // These read the output of the others, from outside.
    ("prof-tests", &[]),
    (
        "prof-fuzz-targets",
        &[
            "prof-model",
            "prof-filemap",
            "prof-procfs",
            "prof-events",
            "prof-perfdata",
            "prof-unwinder",
            "prof-runtimes",
            "prof-symbols",
            "prof-recorder",
            "prof-report",
            "prof-fleet",
        ],
    ),
    (
        "prof-examples",
        &[
            "prof-model",
            "prof-perfdata",
            "prof-unwinder",
            "prof-symbols",
            "prof-recorder",
            "prof-report",
        ],
    ),
    ("prof-needs", &[]),
    ("xtask", &[]),
];

/// The crates that tests may use besides the layers of their crate.
const FOR_TESTS: [&str; 4] = ["prof-model", "prof-filemap", "prof-perfdata", "prof-needs"];

/// Checks the dependencies of every member in the output of `cargo metadata`.
pub(super) fn check(metadata: &Value) -> Vec<Problem> {
    let mut problems = refused(metadata);
    problems.extend(unused(metadata));
    problems
}

/// Dependencies that are not in the layers.
fn refused(metadata: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let packages = metadata["packages"].as_array();
    for package in packages.into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let dependencies = package["dependencies"].as_array();
        for dependency in dependencies.into_iter().flatten() {
            let is_ours = dependency["path"].is_string();
            let on = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            if is_ours && !is_allowed(name, on, for_tests) {
                let what = format!("{name} must not depend on {on}");
                problems.push(Problem::new("docs/architecture.md", what));
            }
        }
        if layers_of(name).is_none() {
            let what = format!("{name} has no place in the layers yet (xtask/src/tidy/layers.rs)");
            problems.push(Problem::new("docs/architecture.md", what));
        }
    }
    problems
}

/// Layers of a package that it does not depend on.
fn unused(metadata: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let dependencies = package["dependencies"].as_array();
        let is_used = |layer: &str| {
            let mut dependencies = dependencies.into_iter().flatten();
            dependencies.any(|dependency| dependency["name"] == layer)
        };
        let layers = layers_of(name).into_iter().flatten();
        problems.extend(layers.filter(|layer| !is_used(layer)).map(|layer| {
            let what = format!("{name} does not use {layer} (xtask/src/tidy/layers.rs)");
            Problem::new("docs/architecture.md", what)
        }));
    }
    problems
}

fn layers_of(package: &str) -> Option<&'static [&'static str]> {
    let found = LAYERS.iter().find(|(known, _)| *known == package);
    found.map(|&(_, layers)| layers)
}

fn is_allowed(package: &str, on: &str, for_tests: bool) -> bool {
    layers_of(package)
        .is_some_and(|allowed| allowed.contains(&on) || for_tests && FOR_TESTS.contains(&on))
}

/// Checks that the table of docs/architecture.md has a row for every folder of crates/, and that it
/// names the crates that this one uses. `prof-model` is left out: nearly all use it.
pub(super) fn check_map(root: &Path) -> Result<Vec<Problem>> {
    let map = root.join("docs/architecture.md");
    let text = match fs::read_to_string(&map) {
        Ok(text) => text,
        Err(error) => {
            return Ok(vec![Problem::new(
                "docs/architecture.md",
                error.to_string(),
            )]);
        }
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("cannot list crates/")? {
        folders.push(format!("crates/{}", entry?.file_name().to_string_lossy()));
    }
    folders.sort();
    let problems = folders.iter().filter_map(|folder| {
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| `{folder}` |")));
        let Some((uses, _)) = row.and_then(|row| row.split_once('|')) else {
            let what = format!("has no row for `{folder}`");
            return Some(Problem::new("docs/architecture.md", what));
        };
        let named: BTreeSet<&str> = uses.split(',').map(str::trim).collect();
        let named: BTreeSet<&str> = named.into_iter().filter(|name| !name.is_empty()).collect();
        let used = used_by(folder);
        (named != used).then(|| {
            let what = format!(
                "says that `{folder}` uses {}, not {}",
                listed(&named),
                listed(&used)
            );
            Problem::new("docs/architecture.md", what)
        })
    });
    Ok(problems.collect())
}

/// The crates that the crate in a folder uses, without the prefix that packages have.
fn used_by(folder: &str) -> BTreeSet<&'static str> {
    let name = folder.trim_start_matches("crates/");
    let layers = layers_of(name).or_else(|| layers_of(&format!("prof-{name}")));
    let layers = layers.into_iter().flatten();
    let used = layers.filter_map(|layer| layer.strip_prefix("prof-"));
    used.filter(|&layer| layer != "model").collect()
}

fn listed(names: &BTreeSet<&str>) -> String {
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => Vec::from_iter(names.iter().copied()).join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(name, kind)| serde_json::json!({"name": name, "kind": kind, "path": "/x"}))
            .collect();
        serde_json::json!({
            "packages": [{"name": name, "dependencies": dependencies}]
        })
    }

    fn check(name: &str, dependencies: &[(&str, Option<&str>)], expected: &[&str]) {
        let problems = refused(&package(name, dependencies));
        let lines: Vec<&str> = problems
            .iter()
            .map(|problem| problem.what.as_str())
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn layers_that_a_crate_does_not_use_are_found() {
        let used = [("prof-model", None), ("prof-events", Some("dev"))];
        assert_eq!(unused(&package("prof-console", &used)), []);
        let problems = unused(&package("prof-console", &used[..1]));
        let what = "prof-console does not use prof-events (xtask/src/tidy/layers.rs)";
        assert_eq!(problems, [Problem::new("docs/architecture.md", what)]);
    }

    #[test]
    fn dependencies_go_down_only() {
        check("prof-recorder", &[("prof-events", None)], &[]);
        check("prof-unwinder", &[("prof-perfdata", Some("dev"))], &[]);
        check(
            "prof-unwinder",
            &[("prof-perfdata", None)],
            &["prof-unwinder must not depend on prof-perfdata"],
        );
        check(
            "prof-model",
            &[("prof-report", None)],
            &["prof-model must not depend on prof-report"],
        );
    }

    #[test]
    fn recorder_and_report_do_not_know_each_other_even_in_tests() {
        let refused = "prof-report must not depend on prof-recorder";
        check("prof-report", &[("prof-recorder", Some("dev"))], &[refused]);
        let refused = "prof-recorder must not depend on prof-report";
        check("prof-recorder", &[("prof-report", Some("dev"))], &[refused]);
    }

    #[test]
    fn a_new_crate_must_be_placed() {
        let what = "prof-new has no place in the layers yet (xtask/src/tidy/layers.rs)";
        check("prof-new", &[], &[what]);
    }

    #[test]
    fn the_layers_name_the_members_of_this_workspace() {
        let metadata = workspace::metadata(workspace::root()).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        for (name, _) in LAYERS {
            assert!(
                packages.iter().any(|package| package["name"] == name),
                "{name}"
            );
        }
    }
}
