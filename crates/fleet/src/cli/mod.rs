//! The command line: flags, messages, exit codes.

mod collect;
mod push;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use prof_model::printable;

/// Profiles of many machines: a data set of open files, and queries over it.
#[derive(Debug, Parser)]
#[command(
    name = "prof",
    version,
    max_term_width = 100,
    subcommand_required = true
)]
struct FleetCli {
    /// What to do.
    #[command(subcommand)]
    command: FleetCommand,
}

/// The verbs of `prof-fleet`, which are verbs of `prof`, too.
#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Store recordings in a data set
    Push(push::PushFlags),
    /// Record without an end, and push each minute
    Collect(collect::CollectFlags),
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let done = match FleetCli::parse().command {
        FleetCommand::Push(flags) => push::run(&flags),
        FleetCommand::Collect(flags) => collect::run(flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Says something on the standard error output. Who has closed it does without.
fn say(message: &str) {
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    let line = format!("prof: {}\n", lines.join("\n"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
