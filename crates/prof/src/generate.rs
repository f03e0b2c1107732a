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
/// There is no such kind, or the standard output cannot be written.
pub(crate) fn run(kind: &str) -> Result<ExitCode> {
    let mut all = pages("prof", ProfCli::command());
    // The page of `cargo` itself is cargo's.
    all.extend(pages("cargo", CargoCli::command()).into_iter().skip(1));
    write_stdout(|out| prof_console::generate("prof", &all, kind, out))?;
    Ok(ExitCode::SUCCESS)
}
