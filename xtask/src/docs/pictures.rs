//! The pictures of README.md and docs/: the page, light and dark, and `prof top`, all of a program
//! that is recorded for them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::guide::build;
use crate::{process, workspace};

/// The steps in `prof top` before its picture is taken.
const STEPS: &str = "see whole\nwait 6\ntype q";

/// Makes docs/pictures anew. It needs python3, node, chromium and chromedriver.
pub(super) fn make() -> Result<()> {
    let prof = build()?;
    let place = workspace::target_directory()?.join("pictures");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let sources = workspace::root().join("xtask/src/docs/pictures");
    let program = place.join("json_threads.py");
    fs::copy(sources.join("json_threads.py"), &program)
        .with_context(|| format!("cannot make {}", program.display()))?;
    let mut record = Command::new(&prof);
    record.args(["record", "--wall", "--html", "page.html", "--"]);
    record.args(["python3", "json_threads.py", "2"]);
    process::run(record.current_dir(&place))?;
    let mut terminal = Command::new("python3");
    terminal.arg(sources.join("terminal.py"));
    terminal.args(["top.html", STEPS]).arg(&prof);
    terminal.args(["top", "--", "python3", "json_threads.py", "20"]);
    process::run(terminal.current_dir(&place))?;
    let folder = workspace::root().join("docs/pictures");
    let mut node = Command::new("node");
    node.arg(workspace::root().join("crates/report/web/test/pictures.mjs"));
    node.arg(folder).args(["page.html", "top.html"]);
    process::run(node.current_dir(&place))
}
