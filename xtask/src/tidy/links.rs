//! Relative links in the documentation must lead somewhere, and the sources that it names must be
//! there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Problem;
use super::source::Source;

/// Checks the Markdown files at the top and in docs/ with its folders. Those in docs/ are pages of
/// the book, or links to them are broken there.
pub(super) fn check(root: &Path, sources: &[Source]) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let docs = root.join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).context("there is no SUMMARY.md")?;
    let pages: Vec<&str> = links(&summary).into_iter().map(|(_, page)| page).collect();
    for file in documents(root)? {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let folder = file.parent().unwrap_or(root);
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        if let Ok(page) = file.strip_prefix(&docs)
            && page != Path::new("SUMMARY.md")
            && !pages.iter().any(|known| page == Path::new(known))
        {
            let place = format!("{name}:1");
            problems.push(Problem::new(place, "is not in docs/SUMMARY.md"));
        }
        for (line, target) in links(&text) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !folder.join(path).exists() {
                let place = format!("{name}:{line}");
                let what = format!("link to {path}, which does not exist");
                problems.push(Problem::new(place, what));
            }
        }
        for (line, path) in source_paths(&text) {
            if !sources.iter().any(|source| ends_in(&source.path, path)) {
                let place = format!("{name}:{line}");
                problems.push(Problem::new(place, format!("{path} does not exist")));
            }
        }
    }
    Ok(problems)
}

/// The Markdown files at the top and in docs/ with its folders, by path.
pub(super) fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let docs = root.join("docs");
    let folders = [
        root.to_path_buf(),
        docs.join("design"),
        docs.join("guide"),
        docs.join("results"),
        docs,
    ];
    for folder in folders {
        if folder.is_dir() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "md") {
                    files.push(path);
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The targets of relative links, `[text](target)`, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (at, opening) in line.match_indices("](") {
            let target = &line[at + opening.len()..];
            let Some((target, _)) = target.split_once(')') else {
                continue;
            };
            let outside = target.contains("://") || target.starts_with("mailto:");
            if !outside {
                found.push((index + 1, target.trim()));
            }
        }
    }
    found
}

/// The paths of Rust files, with their lines; those in braces (`{a,b}.rs`) are left out.
pub(super) fn source_paths(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_other = |char: char| !char.is_alphanumeric() && !"_/.-{},".contains(char);
    let words = text.lines().enumerate().flat_map(move |(index, line)| {
        let words = line.split(is_other);
        words.map(move |word| (index + 1, word.trim_matches(['.', ','])))
    });
    words.filter(|(_, word)| word.ends_with(".rs") && !word.contains(['{', ',']))
}

/// Whether a path ends in these folders and this file.
pub(super) fn ends_in(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{ends_in, links, source_paths};

    #[test]
    fn sources_are_found_by_the_end_of_their_paths() {
        let text = "a\n `b/c.rs`, d.rs. x/{e,f}.rs y/{g.rs,h/i.rs}";
        let found: Vec<_> = source_paths(text).collect();
        assert_eq!(found, [(2, "b/c.rs"), (2, "d.rs")]);
        assert!(ends_in("a/b/c.rs", "b/c.rs") && ends_in("c.rs", "c.rs"));
        assert!(!ends_in("a/bc.rs", "c.rs"));
    }

    #[test]
    fn only_relative_links_outside_of_code_are_ours_to_check() {
        let text = "[a](b.md) and [c](d/e.md#f)\n```\n[x](y)\n```\n[z](https://z.z) ![i](j.svg)";
        assert_eq!(links(text), [(1, "b.md"), (1, "d/e.md#f"), (5, "j.svg")]);
    }
}
