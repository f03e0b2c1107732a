//! The command line of `prof` and `cargo prof`: flags, control flow, messages, exit codes.
#![forbid(unsafe_code)]

mod archive;
mod cargo;
mod ci;
mod doctor;
mod exit;
mod flags;
mod fleet;
mod generate;
mod list;
mod output;
mod progress;
mod record;
mod report;
mod runtimes;
mod stat;
mod symbolization;
mod targets;
mod top;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use prof_console::{Console, parsed};
use prof_events::survive_file_size_limit;

use flags::{CargoCli, CargoCommand, ProfCli, ProfCommand};

/// Runs `prof`.
pub fn prof() -> ExitCode {
    with_large_stack(run_prof)
}

fn run_prof() -> ExitCode {
    if let Err(error) = fleet::run_if_requested() {
        return finish(Err(error));
    }
    match generate::complete() {
        Ok(false) => finish(run(parsed::<ProfCli>())),
        Ok(true) => ExitCode::SUCCESS,
        Err(error) => error.exit(),
    }
}

fn run(cli: ProfCli) -> Result<ExitCode> {
    let Some(command) = cli.command else {
        // Without arguments, clap shows the help.
        return generate::run(&cli.generate.unwrap_or_default());
    };
    match command {
        ProfCommand::Record(flags) => needing_proc(|| record::verb(*flags)),
        ProfCommand::Report(flags) => report::run(*flags),
        ProfCommand::View(flags) => report::view(&flags),
        ProfCommand::Top(flags) => needing_proc(|| top::run(*flags)),
        ProfCommand::Annotate(flags) => report::annotate(*flags),
        ProfCommand::Script(flags) => report::script(*flags),
        ProfCommand::Archive(flags) => archive::run(&flags),
        ProfCommand::Diff(flags) => report::diff(*flags).map(report::CheckedLimits::conclude),
        ProfCommand::Ci(flags) => needing_proc(|| ci::run(*flags)),
        ProfCommand::Stat(flags) => needing_proc(|| stat::run(*flags)),
        ProfCommand::List(flags) => list::run(&flags),
        ProfCommand::Doctor(flags) => needing_proc(|| doctor::run(&flags)),
    }
}

/// Runs `cargo prof`.
pub fn cargo_prof() -> ExitCode {
    with_large_stack(|| {
        let CargoCommand::Prof(flags) = parsed::<CargoCli>().command;
        finish(cargo::run(*flags))
    })
}

/// Runs `main` on a large stack, whatever `ulimit -s` says, and makes writes beyond `ulimit -f`
/// fail instead of ending the process.
fn with_large_stack(main: fn() -> ExitCode) -> ExitCode {
    const STACK: usize = 8 << 20;
    survive_file_size_limit();
    finish(prof_events::system::with_stack(STACK, main).context("cannot start a thread"))
}

/// Runs a verb that needs /proc: without it, it would find no processes and say so; with that of
/// another PID namespace, it would take its processes for others.
fn needing_proc(verb: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    ensure!(
        Path::new("/proc/self/status").exists(),
        "/proc is not mounted, and prof cannot find processes without it (as root: `mount -t proc \
         proc /proc`)"
    );
    let known_as = fs::read_link("/proc/self").unwrap_or_default();
    ensure!(
        known_as == Path::new(&std::process::id().to_string()),
        "/proc shows the processes of another PID namespace: mount that of this one (`unshare \
         --mount-proc`, or as root `mount -t proc proc /proc`)"
    );
    verb()
}

fn finish(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        Console::error(&error);
        ExitCode::FAILURE
    })
}
