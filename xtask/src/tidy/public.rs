//! Public items of a crate must have users in other crates.
//!
//! The rule: the name of each public item of a library occurs outside of the sources of its crate:
//! in another crate, a test, a benchmark or an example. A type may be public also because another
//! public item of the crate mentions it.

use std::collections::{HashMap, HashSet};

use super::Problem;
use super::source::Source;

/// Whole tables of the kernel's numbers.
const TABLES: [&str; 1] = ["crates/perfdata/src/abi.rs"];

/// A public item, by the line that defines it.
struct Item<'a> {
    name: &'a str,
    is_type: bool,
}

/// Finds public items that no other crate uses.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let users = users(sources);
    let mentioned = mentioned(sources);
    let mut problems = Vec::new();
    for source in sources {
        let Some(owner) = library(&source.path) else {
            continue;
        };
        if TABLES.contains(&source.path.as_str()) {
            continue;
        }
        let before_tests = &source.code[..source.lines_before_tests()];
        for (number, line) in before_tests.iter().enumerate() {
            let Some(Item { name, is_type }) = public_item(line) else {
                continue;
            };
            let is_used = |by: &HashSet<&str>| by.iter().any(|&user| user != owner);
            if users.get(name).is_some_and(is_used) || is_type && mentioned.contains(&(owner, name))
            {
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
        for word in source.code.iter().flat_map(|line| words(line)) {
            users.entry(word).or_default().insert(user);
        }
    }
    users
}

/// The names in the declarations of public items, with their crates: in signatures, fields,
/// variants and implementations of traits.
fn mentioned(sources: &[Source]) -> HashSet<(&str, &str)> {
    let mut mentioned = HashSet::new();
    for source in sources {
        let Some(owner) = library(&source.path) else {
            continue;
        };
        let mut lines = source.code[..source.lines_before_tests()].iter();
        while let Some(line) = lines.next() {
            let start = line.trim_start();
            let own = public_item(line).map(|item| item.name);
            let declaration: Vec<&str> = if start.starts_with("pub enum ") {
                // All of its variants.
                let end = format!("{}}}", &line[..line.len() - start.len()]);
                let rest = lines.by_ref().take_while(|line| **line != end);
                std::iter::once(line)
                    .chain(rest)
                    .map(String::as_str)
                    .collect()
            } else if start.starts_with("pub ") && !start.contains("fn ") {
                vec![start]
            } else if start.starts_with("pub ") {
                let mut signature = vec![start];
                while !signature.iter().any(|line| line.contains(['{', ';'])) {
                    let Some(line) = lines.next() else { break };
                    signature.push(line);
                }
                signature
            } else if let (true, Some((of, _))) =
                (start.starts_with("impl"), start.split_once(" for "))
            {
                vec![of]
            } else if start.starts_with("type ") {
                vec![start]
            } else {
                continue;
            };
            let words = declaration.into_iter().flat_map(words);
            let others = words.filter(|&word| own != Some(word));
            mentioned.extend(others.map(|word| (owner, word)));
        }
    }
    mentioned
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// What `pub fn name(`, `pub struct Name` and the like define; `None` for fields and modules.
fn public_item(line: &str) -> Option<Item<'_>> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    // A colon ends a field's name.
    let mut words = words(rest.split([':', '(', '<']).next()?).peekable();
    while let Some(word) = words.next() {
        let is_type = match word {
            "unsafe" | "async" => continue,
            "const" if matches!(words.peek(), Some(&("fn" | "unsafe" | "async"))) => continue,
            "fn" | "const" | "static" => false,
            "struct" | "enum" | "union" | "trait" | "type" => true,
            _ => return None,
        };
        return Some(Item {
            name: words.next()?,
            is_type,
        });
    }
    None
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
    fn types_may_be_public_for_other_public_items() {
        let a = "pub struct Own;\nimpl Own {}\npub const LIMIT: u8 = 1;\npub struct Field;\n\
                 pub struct Used {\n    pub field: Field,\n}\npub struct Inner;\npub enum Outer {\n    \
                 A(Inner),\n}\npub fn used(\n    it: &Argument,\n) {\n}\npub trait Argument {}\n";
        let files = [
            ("crates/a/src/lib.rs", a),
            ("crates/b/src/lib.rs", "fn f() { a::used(); Used; Outer }"),
        ];
        let problem = |line: u8, name: &str| {
            format!("crates/a/src/lib.rs:{line}: no other crate uses {name}: it need not be public")
        };
        check(&files, &[&problem(1, "Own"), &problem(3, "LIMIT")]);
    }

    #[test]
    fn tests_and_examples_are_users() {
        let a = "impl A {\n    pub fn own(&self) {}\n}\n#[cfg(test)]\nmod tests {\n    pub fn x() {}\n}";
        let test = ("crates/a/tests/all.rs", "fn f() { A.own() }");
        check(&[("crates/a/src/lib.rs", a), test], &[]);
    }
}
