//! The pictures of README.md and docs/: the page, light and dark, and `prof top`, all of a program
//! that is recorded for them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::guide::build;
use crate::{process, workspace};

/// The steps in `prof top` before its picture is taken.
const STEPS: &str = "see whole\nwait 6\ntype q";

/// Prints the path of the interpreter.
const FIND_PYTHON: &str = "import os, sys; print(os.path.realpath(sys.executable))";

/// Makes docs/pictures anew. It needs python3, node, chromium and chromedriver.
pub(super) fn make() -> Result<()> {
    let prof = build()?;
    let place = workspace::target_directory()?.join("pictures");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let sources = workspace::root().join("xtask/src/docs/pictures");
    let program = place.join("shop.py");
    fs::copy(sources.join("shop.py"), &program)
        .with_context(|| format!("cannot make {}", program.display()))?;
    // The interpreter itself: the launchers of pyenv and others would be in the picture, too.
    let python = process::output(Command::new("python3").args(["-c", FIND_PYTHON]))?;
    let path = prepend(&[prof.parent(), Path::new(python.trim()).parent()])?;
    let mut record = Command::new("prof");
    record.args(["record", "--wall", "--html", "page.html", "--"]);
    record.args(["python3", "shop.py", "2"]);
    process::run(record.current_dir(&place).env("PATH", &path))?;
    let mut terminal = Command::new("python3");
    terminal.arg(sources.join("terminal.py"));
    terminal.args([
        "top.html", STEPS, "prof", "top", "--", "python3", "shop.py", "20",
    ]);
    process::run(terminal.current_dir(&place).env("PATH", &path))?;
    let folder = workspace::root().join("docs/pictures");
    let mut node = Command::new("node");
    node.arg(workspace::root().join("crates/report/web/test/pictures.mjs"));
    node.arg(folder).args(["page.html", "top.html"]);
    process::run(node.current_dir(&place))
}

/// The PATH with these directories first.
fn prepend(directories: &[Option<&Path>]) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let first = directories.iter().flatten().map(PathBuf::from);
    env::join_paths(first.chain(env::split_paths(&path))).context("a directory's name has a colon")
}
