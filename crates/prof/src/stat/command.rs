//! Counting a command that we start.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::process::{ExitCode, ExitStatus};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use prof_console::{Console, say};
use prof_counters::{Inherit, Options, Target};
use prof_events::counting::Usage;
use prof_events::{HeldCommand, Program, RunningCommand, Signals, system};
use prof_model::printable;

use super::counters::{Counters, Terms};
use super::interval::Intervals;
use super::printer::Printer;
use super::report::{Measurement, Report};
use super::selection::Selection;
use super::wait::{Wake, wait};
use crate::exit;
use crate::flags::StatFlags;

/// Runs the command the requested number of times, prints the counts, and exits as it did.
pub(super) fn run(
    flags: &StatFlags,
    selection: &Selection,
    signals: &Signals,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let mut runs = Vec::new();
    let mut last = None;
    let mut code = ExitCode::SUCCESS;
    for number in 0..flags.repeat {
        let held = match HeldCommand::fork(&Program::new(flags.command.iter().cloned()), signals) {
            Ok(held) => held,
            Err(error) => return Ok(not_started(flags, &error)),
        };
        let mut counters = open(flags, selection, &held)?;
        if number == 0 {
            counters.notes.iter().for_each(say);
        }
        let before = Usage::of_children();
        let intervals = Intervals::new(flags, &mut counters)?;
        if flags.is_system_wide() {
            counters.enable()?;
        }
        let command = match held.release() {
            Ok(command) => command,
            Err(error) => return Ok(not_started(flags, &error)),
        };
        let mut run = Run {
            command,
            intervals,
            counters,
        };
        let outcome = run.follow(signals, printer)?;
        let mut measured = run.measure(before)?;
        if outcome.status.is_none() {
            measured.usage = None;
        }
        let printed = run.intervals.finish(&mut run.counters, printer)?;
        if let Some(status) = outcome.status.filter(|status| !status.success()) {
            code = exit::like(status);
        }
        if !printed {
            runs.push(measured);
        }
        last = Some(run);
        if outcome.interrupted {
            break;
        }
    }
    if let (Some(mut last), false) = (last, runs.is_empty()) {
        let report = Report::new(&last.counters.rows, &runs);
        let places = super::attached::places(flags, &last.intervals, &mut last.counters)?;
        printer.summary(&report, &places)?;
    }
    Ok(code)
}

pub(super) fn open(
    flags: &StatFlags,
    selection: &Selection,
    held: &HeldCommand,
) -> Result<Counters> {
    let system_wide = flags.is_system_wide();
    if system_wide {
        // A descriptor for each event and CPU.
        system::raise_limits();
    }
    let target = match &flags.cgroup {
        Some(cgroup) => Target::Cgroup(cgroup.clone()),
        None if flags.all_cpus => Target::AllCpus,
        None => Target::Process(held.pid()),
    };
    let inherit = match flags.no_inherit || system_wide {
        true => Inherit::No,
        false => Inherit::Children,
    };
    let options = Options {
        inherit,
        enable_on_exec: !system_wide,
        ..Options::default()
    };
    // getrusage covers the whole command, its children included.
    let usage = !system_wide && !flags.no_inherit && flags.interval.is_none();
    Counters::open(selection, &[target], Terms { options, usage })
}

/// Reports a command that could not be started, with the status that a shell gives it.
pub(super) fn not_started(flags: &StatFlags, error: &io::Error) -> ExitCode {
    let command = flags
        .command
        .first()
        .map(|word| printable(&word.to_string_lossy()).into_owned())
        .unwrap_or_default();
    if error.kind() == ErrorKind::NotFound {
        Console::error(&anyhow!("{command}: command not found"));
        return ExitCode::from(127);
    }
    Console::error(&anyhow!("cannot start {command}: {error}"));
    ExitCode::from(126)
}

struct Run {
    command: RunningCommand,
    intervals: Intervals,
    counters: Counters,
}

/// What to do after reading the counters.
pub(super) struct Tick {
    /// When to read them next.
    pub(super) next: Option<Instant>,
    /// Whether the command is to end now.
    pub(super) over: bool,
}

/// How a run ended.
pub(super) struct Outcome {
    /// How the command ended, if it did.
    pub(super) status: Option<ExitStatus>,
    /// Whether a signal ended the run.
    pub(super) interrupted: bool,
}

impl Run {
    /// Waits for the command, and reads the counters at regular times.
    fn follow(&mut self, signals: &Signals, printer: &mut Printer) -> Result<Outcome> {
        let (intervals, counters) = (&mut self.intervals, &mut self.counters);
        let first = intervals.until();
        follow(&mut self.command, signals, first, || {
            intervals.tick(counters, printer)?;
            let over = intervals.is_over();
            let next = if over { None } else { intervals.until() };
            Ok(Tick { next, over })
        })
    }

    fn measure(&mut self, before: Usage) -> Result<Measurement> {
        let wall = self.intervals.elapsed();
        self.counters.disable()?;
        let usage = Usage::of_children().since(before);
        Ok(Measurement {
            counts: self.counters.read()?,
            wall,
            usage: Some(usage),
        })
    }
}

/// Waits for a command, and calls `tick` at the times that it requests. The command gets the
/// signals that we get, and is counted to its end; if it continues, a second signal ends the
/// counting without it.
pub(super) fn follow(
    command: &mut RunningCommand,
    signals: &Signals,
    first: Option<Instant>,
    mut tick: impl FnMut() -> Result<Tick>,
) -> Result<Outcome> {
    const SIGTERM: i32 = 15;
    let mut next = first;
    let mut interrupted = false;
    loop {
        let woken = wait(&mut vec![command.as_fd()], signals, next);
        let status = match woken.context("cannot wait for the command")? {
            Wake::Ended => Some(command.wait().context("cannot wait for the command")?),
            Wake::Signal(_) if interrupted => None,
            Wake::Signal(signal) => {
                interrupted = true;
                if !signal.from_terminal {
                    command.signal(signal.signal);
                }
                continue;
            }
            Wake::Time => {
                let tick = tick()?;
                next = tick.next;
                if tick.over {
                    command.signal(SIGTERM);
                }
                continue;
            }
        };
        return Ok(Outcome {
            status,
            interrupted,
        });
    }
}
