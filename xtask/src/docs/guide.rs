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

/// Builds the book from a copy of docs/ with the references of flags.
pub(super) fn build_book() -> Result<()> {
    let prof = build()?;
    let target = workspace::target_directory()?;
    let source = target.join("book-source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    copy(&workspace::root().join("docs"), &source)?;
    let summary = source.join("SUMMARY.md");
    let mut contents = fs::read_to_string(&summary).context("there is no SUMMARY.md")?;
    contents += "\n# Reference\n\n";
    for program in ["prof", "prof-fleet"] {
        let mut generate = Command::new(prof.with_file_name(program));
        let reference = process::output(generate.args(["--generate", "reference"]))?;
        let page = format!("flags-of-{program}.md");
        fs::write(source.join(&page), reference)?;
        contents += &format!("- [All flags of {program}]({page})\n");
    }
    fs::write(&summary, contents)?;
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

/// Builds prof as it is now, and the programs beside it.
pub(super) fn build() -> Result<std::path::PathBuf> {
    let mut build = process::cargo();
    build.current_dir(workspace::root());
    build.args(["build", "--locked", "--bins"]);
    process::run(build.args(["--package", "prof", "--package", "prof-fleet"]))?;
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
