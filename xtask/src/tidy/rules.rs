//! Rules for one source file each.

use super::Problem;
use super::source::Source;

/// The most lines that a file may have before its tests.
const MOST_LINES: usize = 400;

/// The most characters that a line of comment may have; rustfmt sees to the code.
const MOST_CHARACTERS: usize = 100;

/// Flat tables, which are allowed to be longer.
const FLAT_TABLES: [&str; 0] = [];

/// The only crates that may say `unsafe`.
const UNSAFE_CRATES: [&str; 2] = ["crates/events/", "crates/filemap/"];

/// Macros for drafts.
const UNFINISHED: [&str; 3] = ["todo!", "dbg!", "unimplemented!"];

const PRINTING: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];

/// Checks every rule on one file.
pub(super) fn check(source: &Source, problems: &mut Vec<Problem>) {
    length(source, problems);
    comment_width(source, problems);
    crate_root(source, problems);
    let tests_start = source.lines_before_tests();
    for (index, line) in source.code.iter().enumerate() {
        let place = format!("{}:{}", source.path, index + 1);
        for name in UNFINISHED.into_iter().filter(|name| has_word(line, name)) {
            let what = format!("{name} is for drafts, not for commits");
            problems.push(Problem::new(&place, what));
        }
        if is_library(&source.path) && index < tests_start {
            for name in PRINTING.into_iter().filter(|name| has_word(line, name)) {
                let what = format!("{name} in a library: only binaries print");
                problems.push(Problem::new(&place, what));
            }
        }
        if has_word(line, "unsafe") {
            if !may_be_unsafe(&source.path) {
                let what = "unsafe outside of crates/events and crates/filemap";
                problems.push(Problem::new(&place, what));
            } else if needs_reason(line) && !has_reason(source, index) {
                let what = "unsafe without a `// SAFETY:` comment above it";
                problems.push(Problem::new(&place, what));
            }
        }
    }
}

fn length(source: &Source, problems: &mut Vec<Problem>) {
    if source.lines.is_empty() {
        problems.push(Problem::new(&source.path, "is empty"));
    }
    let lines = source.lines_before_tests();
    // Below tests/ everything is tests.
    let all_tests = source.path.split('/').any(|folder| folder == "tests");
    if lines > MOST_LINES && !all_tests && !FLAT_TABLES.contains(&source.path.as_str()) {
        let what = format!("{lines} lines before the tests: at most {MOST_LINES} are allowed");
        problems.push(Problem::new(&source.path, what));
    }
}

fn comment_width(source: &Source, problems: &mut Vec<Problem>) {
    for (index, line) in source.lines.iter().enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        if is_comment && line.chars().count() > MOST_CHARACTERS {
            let place = format!("{}:{}", source.path, index + 1);
            let what = format!("a comment of over {MOST_CHARACTERS} characters");
            problems.push(Problem::new(&place, what));
        }
    }
}

fn crate_root(source: &Source, problems: &mut Vec<Problem>) {
    let path = source.path.as_str();
    let is_root = path.ends_with("src/lib.rs")
        || path.ends_with("src/main.rs")
        || path.contains("/src/bin/") && !path.ends_with("/mod.rs");
    let forbids = |line: &String| line.trim() == "#![forbid(unsafe_code)]";
    if is_root && !may_be_unsafe(path) && !source.code.iter().any(forbids) {
        let what = "no `#![forbid(unsafe_code)]` in this crate root";
        problems.push(Problem::new(path, what));
    }
}

fn may_be_unsafe(path: &str) -> bool {
    UNSAFE_CRATES.iter().any(|folder| path.starts_with(folder))
}

/// Whether a file belongs to a library other than the one behind `prof`.
fn is_library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/prof/")
}

/// Blocks and impls need a reason; `unsafe fn` states its conditions in its documentation.
fn needs_reason(line: &str) -> bool {
    let after = line.split("unsafe").nth(1).unwrap_or_default().trim_start();
    after.starts_with('{') || after.starts_with("impl")
}

/// Whether the comment above the statement that holds this line states a reason.
fn has_reason(source: &Source, index: usize) -> bool {
    if source.lines[index].contains("// SAFETY:") {
        return true;
    }
    for above in (0..index).rev() {
        let code = source.code[above].trim();
        if code.is_empty() {
            if source.lines[above].trim_start().starts_with("// SAFETY:") {
                return true;
            }
            if source.lines[above].trim().is_empty() {
                return false;
            }
        } else if code.ends_with([';', '}', '{']) && !code.starts_with("#[") {
            return false;
        }
    }
    false
}

/// Whether `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && (word.ends_with('!') || !after.is_some_and(is_part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let mut problems = Vec::new();
        super::check(&Source::new(path, text), &mut problems);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn long_files_are_refused_unless_it_is_their_tests_that_are_long() {
        let long = "\n".repeat(MOST_LINES + 1);
        let what = "crates/model/src/a.rs: 401 lines before the tests: at most 400 are allowed";
        check("crates/model/src/a.rs", &long, &[what]);
        let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        check("crates/model/src/a.rs", &tests, &[]);
        check("tests/tests/a.rs", &long, &[]);
    }

    #[test]
    fn comments_have_a_width() {
        let what = "crates/model/src/a.rs:2: a comment of over 100 characters";
        let text = format!("{0:\u{2500}<100}\n{0:\u{2500}<101}\n", "// ");
        check("crates/model/src/a.rs", &text, &[what]);
    }

    #[test]
    fn libraries_may_print_in_their_tests_only_and_binaries_anywhere() {
        let text =
            "fn f() {\n    print!(\"\");\n}\n#[cfg(test)]\nmod tests {\n    println!();\n}\n";
        let what = "crates/model/src/a.rs:2: print! in a library: only binaries print";
        check("crates/model/src/a.rs", text, &[what]);
        check("crates/prof/src/main_loop.rs", text, &[]);
        check(
            "crates/model/src/b.rs",
            "fn blueprint() {} // println!",
            &[],
        );
    }

    #[test]
    fn unsafe_impls_and_blocks_need_a_reason() {
        let path = "crates/events/src/a.rs";
        let missing = "unsafe without a `// SAFETY:` comment above it";
        let at = |line: usize| format!("{path}:{line}: {missing}");
        check(path, "unsafe impl Send for A {}\n", &[&at(1)]);
        check(
            path,
            "// SAFETY: owned.\n\nunsafe impl Send for A {}\n",
            &[&at(3)],
        );
        check(
            path,
            "// SAFETY: owned.\n#[rustfmt::skip]\nunsafe impl Send for A {}\n",
            &[],
        );
        check(path, "let a = unsafe { b() }; // SAFETY: plain.\n", &[]);
        check(path, "/// # Safety\nunsafe fn a() {}\n", &[]);
    }
}
