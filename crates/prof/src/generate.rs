//! `prof --generate`, and what shells complete.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory};
use prof_console::pages;

use crate::flags::{CargoCli, ProfCli};
use crate::fleet;
use crate::output::write_stdout;

/// Answers a shell that asks for completions; `false` if none does.
///
/// # Errors
///
/// When the shell is unknown, or the answer cannot be written.
pub(crate) fn complete() -> clap::error::Result<bool> {
    // What follows the verbs of prof-fleet, it completes itself.
    prof_console::complete(|| ProfCli::command().subcommands(fleet::VERBS.map(Command::new)))
}

/// Prints what `--generate` asks for.
///
/// # Errors
///
/// When there is no such thing, or the standard output cannot be written.
pub(crate) fn run(kind: &str) -> Result<ExitCode> {
    let mut all = pages("prof", ProfCli::command());
    // `cargo` itself is not ours.
    all.extend(pages("cargo", CargoCli::command()).into_iter().skip(1));
    write_stdout(|out| prof_console::generate("prof", &all, kind, out))?;
    Ok(ExitCode::SUCCESS)
}
