//! The messages of `prof`: each is in a golden file, to be read as a newcomer would.
//!
//! `golden/VERB.txt` holds the output of a verb's situations, `golden/verdict.txt` the lines of
//! verdicts and of fallbacks. `golden/unprinted.txt` lists the other sentences in the sources of
//! all crates: a new message appears here or there. `PROF_BLESS=1` rewrites the golden files.
//! `prof` runs the `prof-fleet` beside it, which must be built, too.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fixtures;
mod situations;
mod sources;
mod verdicts;

use std::path::{Path, PathBuf};

use fixtures::Fixtures;
use situations::VERBS;

/// The outputs of all situations and verdicts equal the golden files, and together with the
/// sentences in `unprinted.txt` they contain all sentences of the sources.
#[test]
fn messages_are_those_of_the_golden_files() {
    let fleet = Path::new(env!("CARGO_BIN_EXE_prof")).with_file_name("prof-fleet");
    if !prof_needs::met(fleet.exists(), "prof-fleet (cargo build -p prof-fleet)") {
        return;
    }
    let fixtures = Fixtures::new();
    let mut goldens: Vec<(&str, String)> = VERBS
        .iter()
        .map(|(verb, situations)| {
            let printed = situations.iter().map(|line| fixtures.run(verb, line));
            (*verb, printed.collect::<Vec<_>>().join("\n"))
        })
        .collect();
    goldens.push(("verdict", verdicts::all()));
    let unprinted = unprinted(&goldens);
    goldens.push(("unprinted", unprinted));
    let differing: Vec<String> = goldens
        .iter()
        .filter_map(|(name, text)| difference(&golden(name), text))
        .collect();
    assert!(
        differing.is_empty(),
        "{}\nPROF_BLESS=1 makes this the expected output; add a situation for a new message",
        differing.join("\n")
    );
}

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages/golden");
    folder.join(format!("{name}.txt"))
}

/// The sentences that no golden file contains, below the names of their files.
fn unprinted(goldens: &[(&str, String)]) -> String {
    // Messages of several lines are indented.
    let printed: Vec<String> = goldens.iter().map(|(_, text)| unwrapped(text)).collect();
    let mut text = String::new();
    let mut file = String::new();
    for sentence in sources::sentences() {
        if printed.iter().any(|golden| sentence.is_in(golden)) {
            continue;
        }
        if sentence.file != file {
            file.clone_from(&sentence.file);
            text += &format!("{}{file}\n", if text.is_empty() { "" } else { "\n" });
        }
        text += &format!("    {}\n", sentence.text.replace('\n', "\n    "));
    }
    text
}

fn unwrapped(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    lines.join("\n")
}

/// The lines that are only in the file, and those that are only in the text; `None` if both are
/// equal, as they are after `PROF_BLESS=1`.
fn difference(file: &Path, text: &str) -> Option<String> {
    if std::env::var_os("PROF_BLESS").is_some() {
        std::fs::write(file, text).unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    let only_in = |one: &str, other: &str, mark: char| -> Vec<String> {
        let others: Vec<&str> = other.lines().collect();
        let own = one.lines().filter(|line| !others.contains(line));
        own.map(|line| format!("{mark} {line}")).collect()
    };
    (expected != text).then(|| {
        let lines = [only_in(&expected, text, '-'), only_in(text, &expected, '+')].concat();
        format!("{} differs:\n{}", file.display(), lines.join("\n"))
    })
}
