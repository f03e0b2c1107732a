//! The command line: flags, messages, exit codes.

mod collect;
mod data;
mod push;
mod query;
mod values;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use prof_console::{Console, generate, pages, parsed, write_stdout};

/// Profiles of many machines: a data set of open files, and queries over it.
#[derive(Debug, Parser)]
#[command(
    name = "prof",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct FleetCli {
    /// Print a manual page (man, man-push, ...: `prof-fleet --generate man-push | man -l -`) or
    /// completions for a shell (complete-bash, complete-zsh, complete-fish: they say how to load
    /// them); `list` prints all kinds
    #[arg(long, value_name = "KIND", exclusive = true)]
    generate: Option<String>,

    /// The verb.
    #[command(subcommand)]
    command: Option<FleetCommand>,
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

/// Executes the command line.
pub fn run() -> ExitCode {
    let done = match prof_console::complete(FleetCli::command) {
        Ok(false) => run_verb(parsed()),
        Ok(true) => Ok(ExitCode::SUCCESS),
        Err(error) => error.exit(),
    };
    done.unwrap_or_else(|error| {
        Console::error(&error);
        ExitCode::FAILURE
    })
}

fn run_verb(cli: FleetCli) -> Result<ExitCode> {
    let Some(command) = cli.command else {
        // Without arguments, clap shows the help.
        let kind = cli.generate.unwrap_or_default();
        let pages = pages(PROGRAM, FleetCli::command());
        let text = generate(PROGRAM, &pages, &kind)?;
        write_stdout(|out| Ok(out.write_all(text.as_bytes())?))?;
        return Ok(ExitCode::SUCCESS);
    };
    match command {
        FleetCommand::Push(flags) => return push::run(&flags),
        FleetCommand::Collect(flags) => collect::run(flags)?,
        FleetCommand::Query(flags) => query::run(&flags)?,
        FleetCommand::Data(flags) => return data::run(&flags),
    }
    Ok(ExitCode::SUCCESS)
}

const PROGRAM: &str = "prof-fleet";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_package_has_what_the_documentation_says() {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(crate_folder.join(path)).unwrap();
        let named = "usr/share/doc/prof-fleet/sql";
        assert!(read("../../docs/fleet.md").contains(&format!("`/{named}`")));
        assert!(read("Cargo.toml").contains(&format!("[\"sql/*\", \"{named}/\", \"644\"]")));
    }

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
