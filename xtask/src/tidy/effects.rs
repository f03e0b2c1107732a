//! What prof does outside of itself is in the tables of docs/security.md: each source file that
//! does such a thing is named there, in the table of its kind.

use std::fs;
use std::path::Path;

use super::Problem;
use super::links::{ends_in, source_paths};
use super::source::Source;

const DOCUMENT: &str = "docs/security.md";

/// A table of the document.
struct Table {
    heading: &'static str,
    /// The code that does such things.
    words: &'static [&'static str],
}

const TABLES: [Table; 3] = [
    Table {
        heading: "What prof writes besides its output",
        words: &[
            "File::create",
            "OpenOptions::new",
            "fs::write(",
            "create_dir",
            "fs::copy(",
            "fs::rename(",
            "remove_file(",
            "remove_dir",
            "renameat",
            "linkat",
            "hard_link(",
            "symlink(",
            "tempfile::",
            "OFlags::CREATE",
            "OFlags::TMPFILE",
        ],
    },
    Table {
        heading: "What prof sets for other programs",
        words: &[
            "Command::new(",
            ".env(",
            ".envs(",
            "environment.push(",
            "environment.extend(",
            "pre_exec(",
            "setrlimit(",
            "sched_set",
            "kill_process(",
            "pidfd_send_signal(",
            "SYS_tgkill",
            "PTRACE_SEIZE",
        ],
    },
    Table {
        heading: "What prof waits for",
        words: &[
            "process_vm_readv",
            "::connect(",
            "poll(",
            "epoll::",
            "waitid(",
            "sigwaitinfo(",
            "flock(",
            "ureq::",
            ".output()",
        ],
    },
];

/// Checks that each place has its row.
pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<Problem> {
    // Without the document, links to it are broken.
    let document = fs::read_to_string(root.join(DOCUMENT)).unwrap_or_default();
    let found = TABLES.iter().flat_map(|table| {
        let rows = section(&document, table.heading);
        let sources = sources.iter().filter(|source| is_ours(&source.path));
        sources.filter_map(move |source| missing(source, table, rows?))
    });
    found.collect()
}

/// Code that users run.
fn is_ours(path: &str) -> bool {
    let in_source = path.starts_with("crates/") && path.contains("/src/");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    in_source && !is_test && !path.ends_with("/testing.rs")
}

/// The first such thing in a file that is not named in these rows.
fn missing(source: &Source, table: &Table, rows: &str) -> Option<Problem> {
    if source_paths(rows).any(|(_, named)| ends_in(&source.path, named)) {
        return None;
    }
    let code = source.code.iter().take(source.lines_before_tests());
    // A module of tests has a file of its own.
    if code.clone().any(|line| line.trim() == "#[test]") {
        return None;
    }
    let (line, word) = code.enumerate().find_map(|(index, line)| {
        let word = table.words.iter().find(|&&word| line.contains(word))?;
        Some((index + 1, word))
    })?;
    let heading = table.heading;
    let what = format!("`{word}` needs a row in {DOCUMENT}, \"{heading}\"");
    Some(Problem::new(format!("{}:{line}", source.path), what))
}

/// The text from a heading to the next one.
fn section<'t>(document: &'t str, heading: &str) -> Option<&'t str> {
    let (_, rest) = document.split_once(&format!("# {heading}\n"))?;
    rest.split("\n#").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_place_needs_a_row() {
        let tree = tempfile::tempdir().unwrap();
        let document = "## What prof writes besides its output\n| `a/src/known.rs` | |\n\
                        ## What prof waits for\n";
        fs::create_dir(tree.path().join("docs")).unwrap();
        fs::write(tree.path().join(DOCUMENT), document).unwrap();
        let text = "// fs::write(\nfn f() {\n    fs::write(path, [0]);\n    x.env(a, b);\n}\n";
        let tests = "#[cfg(test)]\nmod tests {\n    fn f() { fs::write(path, [0]); }\n}\n";
        let sources = [
            ("crates/a/src/known.rs", text),
            ("crates/a/src/new.rs", text),
            ("crates/a/src/tested.rs", tests),
            ("crates/a/tests/all.rs", text),
            ("xtask/src/main.rs", text),
        ];
        let sources = sources.map(|(path, text)| Source::new(path, text));
        let problems: Vec<_> = check(tree.path(), &sources)
            .iter()
            .map(Problem::to_string)
            .collect();
        let expected = "crates/a/src/new.rs:3: `fs::write(` needs a row in docs/security.md, \
                        \"What prof writes besides its output\"";
        assert_eq!(problems, [expected]);
    }

    #[test]
    fn all_tables_are_there() {
        let path = crate::workspace::root().join(DOCUMENT);
        let document = fs::read_to_string(path).unwrap();
        for table in TABLES {
            assert!(
                section(&document, table.heading).is_some(),
                "{}",
                table.heading
            );
        }
    }
}
