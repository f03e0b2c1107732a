//! Counting each thread of a command separately.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use prof_console::say;
use prof_counters::Count;
use prof_events::counting::{
    RawCount, ThreadCount, ThreadCounters, ThreadCountersError, ThreadCounts, Usage,
};
use prof_events::system::{self, System};
use prof_events::{HeldCommand, Program, Signals};
use prof_model::counted;

use super::command::{self, Outcome, Tick};
use super::prefix::Prefix;
use super::printer::Printer;
use super::report::{Measurement, Report};
use super::row::{Counts, Origin, Row};
use super::selection::Selection;
use crate::exit;
use crate::flags::StatFlags;

/// Runs the command the requested number of times, prints the counts of each of its threads, and
/// exits as it did.
pub(super) fn run(
    flags: &StatFlags,
    selection: &Selection,
    signals: &Signals,
    printer: &mut Printer,
) -> Result<ExitCode> {
    if flags.interval.is_some() {
        bail!(
            "-I cannot be used with --per-thread and a command, because the counts of its threads \
             are known only when they end: leave out -I, or count a running process (-p PID)"
        );
    }
    if flags.no_inherit {
        bail!("-i counts only the first thread of the command: leave out -i or --per-thread");
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut rows = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for _ in 0..flags.repeat {
        let held = match HeldCommand::fork(&Program::new(flags.command.iter().cloned()), signals) {
            Ok(held) => held,
            Err(error) => return Ok(command::not_started(flags, &error)),
        };
        if runs.is_empty() {
            rows = countable(flags, selection, &held)?;
        }
        let run = match count_once(flags, &rows, held, signals)? {
            Ok(run) => run,
            Err(error) => return Ok(command::not_started(flags, &error)),
        };
        if run.counted.lost > 0 {
            say(&format_args!(
                "the ring buffers were full: the counts of {} are added to those of the first thread",
                counted(run.counted.lost, "ended thread")
            ));
        }
        if !run.counted.told_apart {
            say(&format_args!(
                "this kernel ({}) does not report the counts of threads that end: the counts are \
                 of all threads together; -p PID counts the threads of a running process one by one",
                system::kernel_release()
            ));
        }
        match run.outcome.status {
            Some(status) if status.success() => {}
            Some(status) => code = exit::like(status),
            None => code = ExitCode::FAILURE,
        }
        let interrupted = run.outcome.interrupted;
        runs.push(run);
        if interrupted {
            break;
        }
    }
    print(&rows, &runs, printer)?;
    Ok(code)
}

/// The counts of the threads of one run.
struct Run {
    counted: ThreadCounts,
    wall: Duration,
    usage: Usage,
    outcome: Outcome,
}

/// How often the rings are read, so that they do not overflow.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the command once; the inner error says that it cannot be started.
fn count_once(
    flags: &StatFlags,
    rows: &[Row],
    held: HeldCommand,
    signals: &Signals,
) -> Result<io::Result<Run>> {
    let mut counters = open(rows, &held)?;
    let (start, before) = (Instant::now(), Usage::of_children());
    let mut running = match held.release() {
        Ok(running) => running,
        Err(error) => return Ok(Err(error)),
    };
    let mut deadline = flags
        .duration
        .and_then(|duration| start.checked_add(duration));
    let soon = || Instant::now().checked_add(LOOK_EVERY);
    let outcome = command::follow(&mut running, signals, soon(), || {
        counters.drain();
        let over = deadline.take_if(|deadline| *deadline <= Instant::now());
        Ok(Tick {
            next: soon(),
            over: over.is_some(),
        })
    })?;
    let wall = start.elapsed();
    let usage = Usage::of_children().since(before);
    let counted = counters.finish().context("cannot read the counters")?;
    Ok(Ok(Run {
        counted,
        wall,
        usage,
        outcome,
    }))
}

/// The events that can be counted, found with counters that are closed again.
fn countable(flags: &StatFlags, selection: &Selection, held: &HeldCommand) -> Result<Vec<Row>> {
    let counters = command::open(flags, selection, held)?;
    counters.notes.iter().for_each(say);
    let mut rows = counters.rows;
    rows.retain(|row| row.origin == Origin::Counter);
    Ok(rows)
}

fn open(rows: &[Row], held: &HeldCommand) -> Result<ThreadCounters> {
    // A descriptor for each event and CPU. The command was forked before and keeps its limits.
    system::raise_limits();
    let cpus = System::read()
        .context("cannot read which CPUs are online")?
        .cpus;
    let events: Vec<_> = rows.iter().map(|row| row.event.clone()).collect();
    ThreadCounters::open(&events, held.pid(), &cpus).map_err(|error| match error {
        ThreadCountersError::Event(index, errno) => {
            let name = rows
                .get(index)
                .map(|row| row.name.as_str())
                .unwrap_or_default();
            anyhow!("cannot count {name} in each thread: {errno}")
        }
        ThreadCountersError::Mixed => anyhow!(
            "--per-thread needs Linux 6.12 or newer for events of several kinds: name events of \
             one kind with -e"
        ),
        ThreadCountersError::Ring(error) => anyhow!(
            "cannot map ring buffers for the counts of the threads: {error}: raise the limit on \
             locked memory (`ulimit -l` or kernel.perf_event_mlock_kb)"
        ),
    })
}

/// Prints each thread of one run, or the means of several runs by the threads' names.
fn print(rows: &[Row], runs: &[Run], printer: &mut Printer) -> Result<()> {
    let named = |tid: i32, run: &Run| match runs.len() {
        _ if !run.counted.told_apart => "all threads".to_owned(),
        1 => format!("{}-{tid}", name(&run.counted.threads, tid)),
        _ => name(&run.counted.threads, tid).to_owned(),
    };
    let mut places: BTreeMap<String, Vec<Counts>> = BTreeMap::new();
    let nothing = vec![Some(Count::default()); rows.len()];
    for (number, run) in runs.iter().enumerate() {
        for (&tid, thread) in &run.counted.threads {
            let place = places.entry(named(tid, run));
            let counts = place.or_insert_with(|| vec![nothing.clone(); runs.len()]);
            let sums = counts.get_mut(number).into_iter().flatten().flatten();
            for (sum, raw) in sums.zip(&thread.counts) {
                *sum = sum.plus(count(raw));
            }
        }
    }
    // Threads with the highest counts come first, as in perf.
    let mut places: Vec<(String, Vec<Counts>)> = places.into_iter().collect();
    places.sort_by_key(|(_, counts)| std::cmp::Reverse(first_event(counts)));
    let places: Vec<(Prefix, Report)> = places
        .into_iter()
        .map(|(place, counts)| {
            let measured = counts
                .into_iter()
                .zip(runs)
                .map(|(counts, run)| Measurement {
                    counts,
                    wall: run.wall,
                    usage: None,
                });
            let prefix = Prefix {
                time: None,
                place: Some(place),
            };
            (prefix, Report::new(rows, &measured.collect::<Vec<_>>()))
        })
        .collect();
    let totals: Vec<Measurement> = runs
        .iter()
        .map(|run| Measurement {
            counts: vec![None; rows.len()],
            wall: run.wall,
            usage: Some(run.usage),
        })
        .collect();
    printer.summary(&Report::new(rows, &totals), &places)
}

fn count(raw: &RawCount) -> Count {
    Count {
        value: raw.value,
        enabled: raw.enabled,
        running: raw.running,
    }
}

/// The count of the first event in all runs.
fn first_event(runs: &[Counts]) -> u64 {
    let firsts = runs.iter().filter_map(|counts| counts.first().copied()?);
    firsts.map(|count| count.value).sum()
}

/// The thread's own name, or the name that it inherited from its parent.
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
