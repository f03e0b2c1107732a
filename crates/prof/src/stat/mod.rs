//! `prof stat`: counts events in a command, in running processes, or on all CPUs.
//!
//! ```text
//!   flags ──(selection)──> names ──(counters: open, fall back)──> Counters ── read ──> counts
//!                                                                                     │
//!   command | threads | attached: start, wait ────────────────────────────────────────┤
//!                                          text | csv | json  <── report (ratios) <───┘
//! ```

mod attached;
mod command;
mod counters;
mod csv;
mod interval;
mod json;
mod part;
mod prefix;
mod printer;
mod ratios;
mod refused;
mod report;
mod row;
mod selection;
mod text;
mod threads;
mod wait;

use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_console::Console;
use prof_events::Signals;

use crate::flags::{StatFlags, take_sleep};
use crate::targets::{processes_of, with_subprocesses};
use printer::Printer;

/// Counts, prints the counts, and exits as the command did.
///
/// # Errors
///
/// An event is unknown or cannot be counted, there is no such target, or the output cannot be
/// written.
pub(crate) fn run(mut flags: StatFlags) -> Result<ExitCode> {
    // Before any thread starts: threads inherit the blocked signals.
    let signals = Signals::block().context("cannot watch for signals")?;
    prof_events::remove_leftovers();
    if !(flags.pids.is_empty() && flags.tids.is_empty()) {
        flags.duration = flags.duration.or(take_sleep(&mut flags.command)?);
    }
    flags.pids = processes_of(&flags.pids, Console::new(false, false));
    if flags.subprocesses {
        flags.pids = with_subprocesses(&flags.pids);
    }
    let selection = selection::Selection::new(&flags)?;
    let mut printer = Printer::new(&flags)?;
    let run = match (
        flags.command.is_empty(),
        flags.per_thread && !flags.is_system_wide(),
    ) {
        (true, _) => attached::run,
        (false, true) => threads::run,
        (false, false) => command::run,
    };
    run(&flags, &selection, &signals, &mut printer)
}
