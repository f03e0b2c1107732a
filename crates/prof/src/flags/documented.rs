//! Tests that the commands in the documentation are valid.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::{CargoCli, ProfCli};
use crate::fleet;

#[test]
fn commands_in_the_documentation_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["docs", "docs/guide"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let mut files: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    files.push(root.join("README.md"));
    let mut checked = 0;
    let mut refused = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for command in commands(&text) {
            let words = words(&command.replace("PID", "1"));
            if words
                .get(1)
                .is_some_and(|verb| fleet::VERBS.contains(&&**verb))
            {
                // The tests of prof-fleet check these.
                continue;
            }
            let understood = match words[0].as_str() {
                "cargo" => CargoCli::try_parse_from(&words).map(drop),
                _ => ProfCli::try_parse_from(&words).map(drop),
            };
            // Text and tables leave the program out.
            let whole = |error: &clap::Error| error.kind() != ErrorKind::MissingRequiredArgument;
            if let Some(error) = understood.err().filter(whole) {
                let error = error.to_string();
                let error = error.lines().next().unwrap_or_default();
                refused.push(format!("{}: {command}: {error}", file.display()));
            }
            checked += 1;
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(checked > 50, "only {checked} commands were found");
}

/// The commands of prof in code blocks and tables. Placeholders such as `FILE` are arguments, too.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block = None;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = block.is_none().then_some(language);
        } else if block == Some("sh") {
            found.push(line.to_owned());
        } else if let (Some("console"), Some(command)) = (block, line.strip_prefix("$ ")) {
            found.push(command.to_owned());
        } else if line.starts_with('|') {
            let line = line.replace("\\|", "|");
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    let parts = found.iter().flat_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        line.split(" | ").flat_map(|part| part.split(" > "))
    });
    let is_command = |part: &&str| {
        let cargo = part.strip_prefix("cargo ").unwrap_or(part);
        // `prof [-]` is a pattern, not a command.
        cargo.starts_with("prof ") && !part.contains(['[', '…']) && !part.contains("...")
    };
    let trimmed = parts.map(str::trim).filter(is_command);
    trimmed.map(str::to_owned).collect()
}

/// The words of a simple command, as a shell splits it.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
