//! The width of lines in the documentation.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Problem;
use super::links::documents;

/// The most characters of a line; tables and links cannot be broken.
const MOST_CHARACTERS: usize = 100;

/// Pages that `cargo xtask bench` writes.
const GENERATED: &str = "docs/results";

/// Checks the Markdown files at the top and in docs/.
pub(super) fn check(root: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for file in documents(root)? {
        let path = file.strip_prefix(root).unwrap_or(&file);
        if path.starts_with(GENERATED) {
            continue;
        }
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        problems.extend(wide_lines(&text).map(|line| {
            let place = format!("{}:{line}", path.display());
            let what = format!("a line of over {MOST_CHARACTERS} characters");
            Problem::new(place, what)
        }));
    }
    Ok(problems)
}

/// The numbers of lines of prose that are too long.
fn wide_lines(text: &str) -> impl Iterator<Item = usize> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let start = line.trim_start();
        in_code ^= start.starts_with("```");
        let may_be_wide =
            in_code || start.starts_with('|') || line.contains("](") || line.contains("://");
        (!may_be_wide && line.chars().count() > MOST_CHARACTERS).then_some(index + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::wide_lines;

    #[test]
    fn only_prose_has_a_width() {
        let (fits, wide) = ("\u{2500}".repeat(100), "a".repeat(101));
        let text = format!("{fits}\n{wide}\n```\n{wide}\n```\n| {wide} |\n[a](b) {wide}\n  {wide}");
        let found: Vec<_> = wide_lines(&text).collect();
        assert_eq!(found, [2, 8]);
    }
}
