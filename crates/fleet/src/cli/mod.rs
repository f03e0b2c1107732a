//! The command line: flags, messages, exit codes.

mod collect;
mod data;
mod push;
mod query;
mod values;

use std::io::{BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Result;
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
    /// Ask a data set: which functions used how much, on which machines, when
    Query(Box<query::QueryFlags>),
    /// Compact a data set, or check it
    Data(data::DataFlags),
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let done = match FleetCli::parse().command {
        FleetCommand::Push(flags) => push::run(&flags).map(|()| ExitCode::SUCCESS),
        FleetCommand::Collect(flags) => collect::run(flags).map(|()| ExitCode::SUCCESS),
        FleetCommand::Query(flags) => query::run(&flags).map(|()| ExitCode::SUCCESS),
        FleetCommand::Data(flags) => data::run(&flags),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            say(&format!("error: {}", in_one_line(&error)));
            ExitCode::FAILURE
        }
    }
}

/// The chain of causes. Typed errors say their cause themselves, so that it is not said again.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

/// Says something on the standard error output. Who has closed it does without.
fn say(message: &str) {
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    let line = format!("prof: {}\n", lines.join("\n"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Writes to the standard output. Who has closed it wants no more.
fn print(fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let done = fill(&mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Err(error) if is_closed(&error) => Ok(()),
        done => done,
    }
}

fn is_closed(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|error| error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn commands_in_the_documentation_are_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in ["README.md", "docs/fleet.md", "docs/guide/service.md"] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let mut checked = 0;
            for line in text.lines() {
                let command = line.split(" #").next().unwrap_or_default();
                let words: Vec<&str> = command.split_whitespace().collect();
                if let ["prof", "push" | "collect" | "query" | "data", ..] = words[..] {
                    let understood = FleetCli::try_parse_from(&words);
                    assert!(understood.is_ok(), "{file}: {command}: {understood:?}");
                    checked += 1;
                }
            }
            assert!(checked > 0, "{file} has no command of this program");
        }
    }
}
