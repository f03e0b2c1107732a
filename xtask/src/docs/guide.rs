//! The manual: docs/guide, and the book that is built from docs/.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// Runs the commands of the manual, and writes their output below them.
pub(super) fn refresh() -> Result<()> {
    let prof = build()?;
    let mut test = process::cargo();
    test.current_dir(workspace::root());
    test.args(["test", "--locked", "--package", "prof-tests"]);
    test.args(["--test", "real_programs", "--", "guide::"]);
    process::run(test.env("PROF", prof).env("PROF_BLESS", "1"))
}

/// Builds the book of a copy of docs/, to which the reference of flags is added.
pub(super) fn build_book() -> Result<()> {
    let prof = build()?;
    let target = workspace::target_directory()?;
    let source = target.join("book-source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    copy(&workspace::root().join("docs"), &source)?;
    let mut generate = Command::new(prof);
    let reference = process::output(generate.args(["--generate", "reference"]))?;
    fs::write(source.join("reference.md"), reference)?;
    let summary = source.join("SUMMARY.md");
    let contents = fs::read_to_string(&summary).context("there is no SUMMARY.md")?;
    fs::write(&summary, contents + "- [All flags](reference.md)\n")?;
    let book = target.join("book");
    let mut mdbook = Command::new("mdbook");
    mdbook
        .arg("build")
        .arg(&source)
        .arg("--dest-dir")
        .arg(&book);
    process::run(&mut mdbook).context("mdBook builds the book: `cargo install mdbook`")?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// Builds prof as it is now.
pub(super) fn build() -> Result<std::path::PathBuf> {
    let mut build = process::cargo();
    build.current_dir(workspace::root());
    process::run(build.args(["build", "--locked", "--package", "prof", "--bins"]))?;
    Ok(workspace::target_directory()?.join("debug/prof"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), &target).map(drop)?,
        }
    }
    Ok(())
}
