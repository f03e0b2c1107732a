//! Counting every thread of a command by itself.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use prof_counters::Count;
use prof_events::counting::{RawCount, ThreadCount, ThreadCounters, ThreadCountersError, Usage};
use prof_events::system::{self, System};
use prof_events::{HeldCommand, Program, RunningCommand, Signals};

use super::command;
use super::counters::{Origin, Row};
use super::printer::{Prefix, Printer};
use super::report::{Measurement, Report};
use super::wait::{Wake, wait};
use super::wanted::Wanted;
use crate::console::Console;
use crate::exit;
use crate::flags::StatFlags;

/// Runs the command, prints what each of its threads counted, and exits as it did.
pub(super) fn run(
    flags: &StatFlags,
    wanted: &Wanted,
    signals: &Signals,
    printer: &mut Printer,
) -> Result<ExitCode> {
    if flags.interval.is_some() || flags.repeat > 1 || flags.no_inherit {
        bail!("--per-thread of a command goes neither with -I nor with -r nor with -i");
    }
    let held = match HeldCommand::fork(&Program::new(flags.command.iter().cloned()), signals) {
        Ok(held) => held,
        Err(error) => return Ok(command::not_started(flags, &error)),
    };
    let rows = rows(flags, wanted, &held)?;
    let mut counters = open(&rows, &held)?;
    let (start, before) = (Instant::now(), Usage::of_children());
    let mut running = match held.release() {
        Ok(running) => running,
        Err(error) => return Ok(command::not_started(flags, &error)),
    };
    let deadline = flags
        .duration
        .and_then(|duration| start.checked_add(duration));
    let status = follow(&mut running, &mut counters, signals, deadline)?;
    let wall = start.elapsed();
    let usage = Some(Usage::of_children().since(before));
    let (threads, lost) = counters.finish().context("cannot read the counters")?;
    if lost > 0 {
        Console::new(false, false).say(format_args!(
            "{lost} records of threads that ended were lost; what they counted is with the first thread"
        ));
    }
    print(&rows, &threads, wall, usage, printer)?;
    Ok(status.map_or(ExitCode::FAILURE, exit::like))
}

/// What can be counted, tried with counters that are closed again.
fn rows(flags: &StatFlags, wanted: &Wanted, held: &HeldCommand) -> Result<Vec<Row>> {
    let counters = command::open(flags, wanted, held)?;
    let console = Console::new(false, false);
    counters.notes.iter().for_each(|note| console.say(note));
    Ok(counters
        .rows
        .into_iter()
        .filter(|row| row.origin == Origin::Counter)
        .collect())
}

fn open(rows: &[Row], held: &HeldCommand) -> Result<ThreadCounters> {
    // A descriptor for each event and CPU. The command was forked before and keeps its limits.
    system::raise_limits();
    let cpus = System::read()
        .context("cannot tell which CPUs are online")?
        .cpus;
    let events: Vec<_> = rows.iter().map(|row| row.event.clone()).collect();
    ThreadCounters::open(&events, held.pid(), &cpus).map_err(|error| match error {
        ThreadCountersError::Event(index, errno) => {
            let name = rows.get(index).map(|row| row.name.as_str()).unwrap_or_default();
            anyhow!("cannot count {name} of each thread: {errno}")
        }
        ThreadCountersError::Mixed => anyhow!(
            "this kernel is too old (before Linux 6.12) to tell threads apart for events of several \
             kinds: name events of one kind only, with -e"
        ),
        ThreadCountersError::Ring(error) => anyhow!(
            "cannot map ring buffers for what the threads count: {error}: raise the limit on locked memory \
             with `ulimit -l` or kernel.perf_event_mlock_kb"
        ),
    })
}

/// Waits for the command, as [`command`] does, and keeps the rings from running over.
fn follow(
    command: &mut RunningCommand,
    counters: &mut ThreadCounters,
    signals: &Signals,
    deadline: Option<Instant>,
) -> Result<Option<ExitStatus>> {
    const LOOK_EVERY: Duration = Duration::from_millis(20);
    const SIGTERM: i32 = 15;
    let mut interrupted = false;
    let mut deadline = deadline;
    loop {
        let next = Instant::now().checked_add(LOOK_EVERY);
        match wait(&mut vec![command.as_fd()], signals, next)
            .context("cannot wait for the command")?
        {
            Wake::Ended => return Ok(Some(command.wait().context("cannot wait for the command")?)),
            Wake::Signal(_) if interrupted => return Ok(None),
            Wake::Signal(signal) => {
                interrupted = true;
                if !signal.from_terminal {
                    command.signal(signal.signal);
                }
            }
            Wake::Time => counters.drain(),
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            deadline = None;
            command.signal(SIGTERM);
        }
    }
}

fn print(
    rows: &[Row],
    threads: &BTreeMap<i32, ThreadCount>,
    wall: Duration,
    usage: Option<Usage>,
    printer: &mut Printer,
) -> Result<()> {
    let count = |raw: &RawCount| {
        Some(Count {
            value: raw.value,
            enabled: raw.enabled,
            running: raw.running,
        })
    };
    let mut places: Vec<(u64, Prefix, Report)> = threads
        .iter()
        .map(|(tid, thread)| {
            let counts = thread.counts.iter().map(count).collect();
            let report = Report::new(
                rows,
                &[Measurement {
                    counts,
                    wall,
                    usage: None,
                }],
            );
            let prefix = Prefix {
                time: None,
                place: Some(format!("{}-{tid}", name(threads, *tid))),
            };
            (
                thread.counts.first().map_or(0, |count| count.value),
                prefix,
                report,
            )
        })
        .collect();
    // Those that did the most come first, as with perf.
    places.sort_by_key(|(value, _, _)| std::cmp::Reverse(*value));
    let places: Vec<(Prefix, Report)> = places
        .into_iter()
        .map(|(_, prefix, report)| (prefix, report))
        .collect();
    let total = Measurement {
        counts: vec![None; rows.len()],
        wall,
        usage,
    };
    printer.summary(&Report::new(rows, &[total]), &places)
}

/// The thread's own name, or the one that it has from the thread that made it.
fn name(threads: &BTreeMap<i32, ThreadCount>, tid: i32) -> &str {
    const LONGEST_LINE: usize = 64;
    let mut next = tid;
    for _ in 0..LONGEST_LINE {
        match threads.get(&next) {
            Some(thread) if thread.name.is_empty() => next = thread.parent,
            Some(thread) => return &thread.name,
            None => break,
        }
    }
    ""
}
