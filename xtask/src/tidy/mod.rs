//! `cargo xtask tidy`: checks the promises of docs/architecture.md about the source tree.

mod circles;
mod effects;
mod layers;
mod links;
mod modules;
mod paths;
mod prose;
mod public;
mod rules;
mod source;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::bench::readme;
use crate::workspace;

/// Something in the tree that breaks a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// The file, relative to the top of the checkout, with a line if there is one.
    place: String,
    what: String,
}

impl Problem {
    fn new(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self {
            place: place.to_string(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Checks this checkout, and prints the problems.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root();
    let mut problems = check_files(root)?;
    problems.extend(layers::check(&workspace::metadata(root)?));
    if !readme::is_current(root)? {
        let what = format!("the costs are not those of {}", readme::RESULTS);
        problems.push(Problem::new("README.md", what));
    }
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => bail!("1 problem"),
        count => bail!("{count} problems"),
    }
}

/// All problems that can be found by reading the files below `root`.
fn check_files(root: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let sources = source::all(root)?;
    for source in &sources {
        rules::check(source, &mut problems);
    }
    problems.extend(modules::check(&sources));
    problems.extend(circles::check(&sources));
    problems.extend(public::check(&sources));
    problems.extend(links::check(root, &sources)?);
    problems.extend(effects::check(root, &sources));
    problems.extend(prose::check(root)?);
    problems.extend(layers::check_map(root)?);
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let problems = check_files(tree.path()).unwrap();
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_good_tree_passes() {
        check(
            &[
                (
                    "README.md",
                    "[map](docs/architecture.md#top) [us](https://x.y)",
                ),
                ("docs/SUMMARY.md", "- [The map](architecture.md)"),
                (
                    "docs/architecture.md",
                    "| `crates/model` | | all |\n| `crates/events` | procfs, filemap | calls |",
                ),
                ("crates/model/src/lib.rs", "#![forbid(unsafe_code)]\nmod a;"),
                (
                    "crates/model/src/a.rs",
                    "// unsafe { todo!() } println!()\n",
                ),
                (
                    "crates/events/src/lib.rs",
                    "fn f() {\n    // SAFETY: the file\n    // is ours.\n    let a =\n        unsafe { g() };\n}\n",
                ),
            ],
            &[],
        );
    }

    #[test]
    fn a_bad_tree_is_refused() {
        check(
            &[
                ("README.md", "see [this](docs/gone.md)"),
                ("docs/SUMMARY.md", "- [The map](map.md)"),
                ("docs/architecture.md", "| `crates/model` | events | all |"),
                ("docs/map.md", ""),
                ("crates/model/src/lib.rs", "fn f() { dbg!(1); }"),
                (
                    "crates/report/src/lib.rs",
                    "#![forbid(unsafe_code)]\nmod b;",
                ),
                (
                    "crates/report/src/b.rs",
                    "fn f() {\n    todo!();\n    eprintln!();\n    unsafe { g() }\n}\n",
                ),
                (
                    "crates/events/src/lib.rs",
                    "fn f() {\n    // SAFETY: as below.\n    g();\n    unsafe { g() }\n}\n",
                ),
                ("crates/events/src/nothing.rs", ""),
            ],
            &[
                "crates/events/src/lib.rs:4: unsafe without a `// SAFETY:` comment above it",
                "crates/events/src/nothing.rs: is empty",
                "crates/model/src/lib.rs: no `#![forbid(unsafe_code)]` in this crate root",
                "crates/model/src/lib.rs:1: dbg! is for drafts, not for commits",
                "crates/report/src/b.rs:2: todo! is for drafts, not for commits",
                "crates/report/src/b.rs:3: eprintln! in a library: only binaries print",
                "crates/report/src/b.rs:4: unsafe outside of crates/events and crates/filemap",
                "README.md:1: link to docs/gone.md, which does not exist",
                "docs/architecture.md:1: is not in docs/SUMMARY.md",
                "docs/architecture.md: has no row for `crates/events`",
                "docs/architecture.md: says that `crates/model` uses events, not nothing",
                "docs/architecture.md: has no row for `crates/report`",
            ],
        );
    }

    #[test]
    fn this_checkout_is_read() {
        let sources = source::all(workspace::root()).unwrap();
        let has = |path: &str| sources.iter().any(|source| source.path == path);
        assert!(has("xtask/src/tidy/mod.rs") && has("crates/model/src/lib.rs"));
        assert!(
            !sources
                .iter()
                .any(|source| source.path.starts_with("tests/programs/"))
        );
    }
}
