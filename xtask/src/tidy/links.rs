//! Relative links in the documentation must lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Problem;

/// Checks the Markdown files at the top and in docs/ with its folders.
pub(super) fn check(root: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for file in documents(root)? {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let folder = file.parent().unwrap_or(root);
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        for (line, target) in links(&text) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !folder.join(path).exists() {
                let place = format!("{name}:{line}");
                let what = format!("link to {path}, which does not exist");
                problems.push(Problem::new(place, what));
            }
        }
    }
    Ok(problems)
}

fn documents(root: &Path) -> Result<Vec<PathBuf>> {
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

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn only_relative_links_outside_of_code_are_ours_to_check() {
        let text = "[a](b.md) and [c](d/e.md#f)\n```\n[x](y)\n```\n[z](https://z.z) ![i](j.svg)";
        assert_eq!(links(text), [(1, "b.md"), (1, "d/e.md#f"), (5, "j.svg")]);
    }
}
