//! The sentences in the sources: any literal of some words may become a message.

use std::path::{Path, PathBuf};

/// A string literal that users may read.
pub(crate) struct Sentence {
    /// Its file, below `crates/`.
    pub(crate) file: String,
    /// Its text in the source, with placeholders.
    pub(crate) text: String,
}

impl Sentence {
    /// Whether this output contains it, with any text for its placeholders.
    pub(crate) fn is_in(&self, output: &str) -> bool {
        let mut rest = output;
        fixed_parts(&self.text).iter().all(|part| {
            let found = rest.find(part.as_str());
            rest = found.map_or("", |at| &rest[at + part.len()..]);
            found.is_some()
        })
    }
}

/// The texts between the placeholders of a format string.
fn fixed_parts(format: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut chars = format.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '{' && chars.peek() != Some(&'{') {
            chars.by_ref().find(|&char| char == '}');
            parts.push(std::mem::take(&mut part));
        } else {
            // A doubled brace is one brace.
            chars.next_if(|&next| next == char && "{}".contains(char));
            part.push(char);
        }
    }
    parts.push(part);
    parts
}

/// The sentences of all crates, except those of tests.
pub(crate) fn sentences() -> Vec<Sentence> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut files);
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        let name = file.strip_prefix(crates).unwrap().display().to_string();
        found.extend(
            literals(code)
                .into_iter()
                .filter(|text| is_sentence(text))
                .map(|text| Sentence {
                    file: name.clone(),
                    text,
                }),
        );
    }
    found
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "tests" {
            collect(&path, files);
        } else if name.ends_with(".rs") && !["tests.rs", "testing.rs"].contains(&&*name) {
            files.push(path);
        }
    }
}

/// At least three words, and no markup.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(char::is_ascii_lowercase).count() > 1;
    !text.contains(['<', '\t']) && text.split(' ').filter(is_word).count() >= 3
}

/// The string literals of Rust code, except the reasons in lint attributes.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        let (before, here) = rest.split_at(at);
        rest = if here.starts_with("//") {
            here.find('\n').map_or("", |end| &here[end..])
        } else if let Some(code) = here.strip_prefix('"') {
            let is_raw = before.ends_with('r') || before.ends_with("r#");
            let (text, after) = literal(code, is_raw);
            if !before.trim_end().ends_with("reason =") {
                found.push(text);
            }
            after
        } else if here.starts_with("'\"'") || here.starts_with("'\\") {
            // Characters that look like the start of something else.
            &here[3..]
        } else {
            &here[1..]
        };
    }
    found
}

/// A literal's text, and the code after it. `code` begins after the opening quote.
fn literal(code: &str, is_raw: bool) -> (String, &str) {
    let mut text = String::new();
    let mut chars = code.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' if !is_raw => match chars.next() {
                Some('n') => text.push('\n'),
                Some('\n') => chars = chars.as_str().trim_start().chars(),
                Some(escaped) => text.push(escaped),
                None => {}
            },
            char => text.push(char),
        }
    }
    (text, chars.as_str())
}
