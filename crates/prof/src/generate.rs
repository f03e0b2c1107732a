//! `prof --generate`, and completions.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory};
use prof_console::pages;

use crate::flags::{CargoCli, ProfCli};
use crate::fleet;
use crate::output::write_stdout;

/// Answers a shell that asks for completions; returns `false` if none asks.
///
/// # Errors
///
/// The shell is unknown, or the answer cannot be written.
pub(crate) fn complete() -> clap::error::Result<bool> {
    // prof-fleet itself completes the arguments of its verbs.
    prof_console::complete(|| ProfCli::command().subcommands(fleet::VERBS.map(Command::new)))
}

/// Prints the output of `--generate`.
///
/// # Errors
///
/// There is no such kind, the standard output cannot be written, or the page is of `prof-fleet`,
/// which cannot be run.
pub(crate) fn run(kind: &str) -> Result<ExitCode> {
    let verb = kind
        .strip_prefix("man-")
        .and_then(|rest| rest.split('-').next());
    if let Some(verb) = verb.filter(|verb| fleet::VERBS.contains(verb)) {
        return Err(fleet::run(verb));
    }
    let mut all = pages("prof", ProfCli::command());
    // The page of `cargo` itself is cargo's.
    all.extend(pages("cargo", CargoCli::command()).into_iter().skip(1));
    let text = prof_console::generate("prof", &all, kind)?;
    write_stdout(|out| Ok(out.write_all(text.as_bytes())?))?;
    Ok(ExitCode::SUCCESS)
}
