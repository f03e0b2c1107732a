//! Public functions of a crate must have users in other crates.
//!
//! The rule: the name of each public function of a library occurs outside of the crate's own
//! sources: in another crate, a test, a benchmark or an example. Types may be public only because
//! functions return them, so they do not count.

use std::collections::{HashMap, HashSet};

use super::Problem;
use super::source::Source;

/// Finds public functions that no other crate uses.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let users = users(sources);
    let mut problems = Vec::new();
    for source in sources {
        let Some(owner) = library(&source.path) else {
            continue;
        };
        let before_tests = &source.code[..source.lines_before_tests()];
        for (number, line) in before_tests.iter().enumerate() {
            let Some(name) = public_function(line) else {
                continue;
            };
            let is_used = |by: &HashSet<&str>| by.iter().any(|&user| user != owner);
            if users.get(name).is_some_and(is_used) {
                continue;
            }
            let place = format!("{}:{}", source.path, number + 1);
            let what = format!("no other crate uses {name}: it need not be public");
            problems.push(Problem::new(place, what));
        }
    }
    problems
}

/// The crate whose library this file is a part of; `None` for tests and the like.
fn library(path: &str) -> Option<&str> {
    let (root, _) = path.split_once("/src/")?;
    root.starts_with("crates/").then_some(root)
}

/// The users of each word: the folders of libraries, and the paths of other files.
fn users(sources: &[Source]) -> HashMap<&str, HashSet<&str>> {
    let mut users: HashMap<&str, HashSet<&str>> = HashMap::new();
    for source in sources {
        let user = library(&source.path).unwrap_or(&source.path);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words = source
            .code
            .iter()
            .flat_map(|line| line.split(|c| !is_word(c)));
        for word in words.filter(|word| !word.is_empty()) {
            users.entry(word).or_default().insert(user);
        }
    }
    users
}

/// The name in `pub fn name(`, `pub const fn name(` and the like.
fn public_function(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let (before, after) = rest.split_once("fn ")?;
    let mut qualifiers = before.split_ascii_whitespace();
    if !qualifiers.all(|word| ["const", "unsafe", "async"].contains(&word)) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    after.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let source = |(path, text): &(&str, &str)| Source::new(*path, text);
        let sources: Vec<Source> = files.iter().map(source).collect();
        let problems = super::check(&sources);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn functions_of_one_crate_need_not_be_public() {
        let a = "pub fn used() {}\npub const fn own(x: u8) {}\npub(crate) fn f() { own(0) }";
        let files = [
            ("crates/a/src/lib.rs", a),
            ("crates/b/src/lib.rs", "fn f() { a::used() } // own"),
        ];
        let problem = "crates/a/src/lib.rs:2: no other crate uses own: it need not be public";
        check(&files, &[problem]);
    }

    #[test]
    fn tests_and_examples_are_users() {
        let a = "impl A {\n    pub fn own(&self) {}\n}\n#[cfg(test)]\nmod tests {\n    pub fn x() {}\n}";
        let test = ("crates/a/tests/all.rs", "fn f() { A.own() }");
        check(&[("crates/a/src/lib.rs", a), test], &[]);
    }
}
