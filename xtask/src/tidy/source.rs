//! The Rust sources of a checkout, with comments and literals separated from code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold no sources of ours: build output, history, programs to be profiled.
const SKIPPED: [&str; 4] = [
    "target",
    "tests/programs",
    "docs/guide/programs",
    "xtask/demo",
];

/// One source file.
pub(super) struct Source {
    /// Relative to the top of the checkout, with `/` between components.
    pub(super) path: String,
    /// The text, line by line.
    pub(super) lines: Vec<String>,
    /// The lines with comments and the contents of literals blanked out.
    pub(super) code: Vec<String>,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: &str) -> Self {
        Self {
            path: path.into(),
            lines: text.lines().map(String::from).collect(),
            code: code_of(text).lines().map(String::from).collect(),
        }
    }

    /// How many lines come before the unit tests.
    pub(super) fn lines_before_tests(&self) -> usize {
        // Neither those in another file (`mod tests;`) nor a function for tests.
        let is_tests = |lines: &[String]| {
            let is_module = lines[1].contains("mod ") && lines[1].trim_end().ends_with(['{', '}']);
            lines[0].trim_end() == "#[cfg(test)]" && is_module
        };
        let first = self.code.windows(2).position(is_tests);
        first.unwrap_or(self.code.len())
    }
}

/// All Rust sources below `root`, by path.
pub(super) fn all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    walk(root, "", &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn walk(root: &Path, folder: &str, sources: &mut Vec<Source>) -> Result<()> {
    let directory = root.join(folder);
    let entries =
        fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match folder {
            "" => name.clone(),
            _ => format!("{folder}/{name}"),
        };
        let kind = entry.file_type()?;
        let skipped = name.starts_with('.') || SKIPPED.contains(&path.as_str());
        if kind.is_dir() && !skipped {
            walk(root, &path, sources)?;
        } else if kind.is_file() && name.ends_with(".rs") {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            sources.push(Source::new(path, &text));
        }
    }
    Ok(())
}

/// The text with comments and the insides of string and character literals turned into
/// spaces; line breaks stay where they are.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = literal_or_comment(rest, code.chars().next_back());
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (blank, after) = rest.split_at(length);
            code.extend(blank.chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = after;
        }
    }
    code
}

/// How many bytes of comment or literal `rest` begins with.
fn literal_or_comment(rest: &str, before: Option<char>) -> usize {
    let until = |end: &str, skip: usize| {
        let found = rest[skip..].find(end);
        found.map_or(rest.len(), |at| skip + at + end.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let after_prefix = rest.trim_start_matches(['b', 'c']);
    if !in_word && let Some(raw) = after_prefix.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let start = rest.len() - raw.len() + hashes + 1;
            return until(&format!("\"{}", "#".repeat(hashes)), start);
        }
    }
    match rest.as_bytes() {
        [b'"', ..] => quoted(rest, '"'),
        // A character, unless it is a lifetime.
        [b'\'', b'\\', ..] => quoted(rest, '\''),
        [b'\'', ..] if rest.chars().nth(2) == Some('\'') => quoted(rest, '\''),
        _ => 0,
    }
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let words: Vec<String> = code_of(text).split_whitespace().map(String::from).collect();
        assert_eq!(words.join(" "), expected, "of {text}");
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check(r#"f("x \" y", 'z', b'"')"#, "f( , , b )");
        check(r##"f(r"\", r#"x " y"#, br"x")"##, "f( , , )");
        check(
            "fn f<'a>(x: &'a str) -> char { '\\'' }",
            "fn f<'a>(x: &'a str) -> char { }",
        );
        check("var\"x\"; for r in x", "var ; for r in x");
        check("\"a\nb\" c", "c");
        check("\"never closed", "");
    }

    #[test]
    fn lines_are_counted_up_to_the_tests() {
        let source = Source::new(
            "a.rs",
            "fn f() {}\n// #[cfg(test)]\n\n#[cfg(test)]\nmod tests {}\n",
        );
        assert_eq!((source.lines_before_tests(), source.lines.len()), (3, 5));
        let others = "#[cfg(test)]\nmod tests;\nimpl A {\n    #[cfg(test)]\n    fn f() {}\n}\n";
        let source = Source::new("a.rs", others);
        assert_eq!(source.lines_before_tests(), 6);
    }
}
