//! `cargo xtask web`: bundles the page of `prof report --html`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Fails if the checked-in bundle does not match its source, and leaves it as it is.
    #[arg(long)]
    check: bool,
}

/// The output of the bundler, below `dist`.
const FILES: [&str; 2] = ["page.html", "model.mjs"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let web = workspace::root().join("crates/report/web");
    let dist = web.join("dist");
    if !options.check {
        return bundle(&web, &dist);
    }
    let made = workspace::target_directory()?.join("web");
    bundle(&web, &made)?;
    for file in FILES {
        let read = |folder: &Path| {
            let path = folder.join(file);
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        ensure!(
            read(&made)? == read(&dist)?,
            "crates/report/web/dist/{file} does not match its source: run `cargo xtask web` and \
             commit its output"
        );
    }
    Ok(())
}

/// The check of [`run`], where there is npm.
pub(crate) fn check() -> Result<()> {
    if process::find("npm").is_none() {
        let missing = "NOT CHECKED: npm is missing, so the page's bundle may not match its source";
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        ensure!(!in_ci, "{missing}");
        println!("!!! {missing}");
        return Ok(());
    }
    run(&Options { check: true })
}

/// Checks types and bundles into a folder.
fn bundle(web: &Path, to: &Path) -> Result<()> {
    let npm =
        |arguments: &[&OsStr]| process::run(Command::new("npm").args(arguments).current_dir(web));
    let words = |line: &'static str| line.split(' ').map(OsStr::new).collect::<Vec<_>>();
    npm(&words("ci --no-audit --no-fund --silent"))?;
    npm(&[words("run --silent build --"), vec![to.as_os_str()]].concat())
}
