//! Counting in running processes, threads, CPUs or a cgroup.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_console::say;
use prof_counters::{Inherit, Options, Target};
use prof_events::Signals;
use rustix::process::{Pid, PidfdFlags};

use super::counters::{Counters, Terms};
use super::interval::Intervals;
use super::prefix::Prefix;
use super::printer::Printer;
use super::report::{Measurement, Report};
use super::selection::Selection;
use super::wait::{Wake, wait};
use crate::flags::StatFlags;

/// Counts until a signal comes, the time is up, or all targets have ended.
pub(super) fn run(
    flags: &StatFlags,
    selection: &Selection,
    signals: &Signals,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let ends = ends(flags);
    let mut counters = open(flags, selection)?;
    counters.notes.iter().for_each(say);
    let mut intervals = Intervals::new(flags, &mut counters)?;
    counters.enable()?;
    let mut waiting: Vec<_> = ends.iter().map(AsFd::as_fd).collect();
    loop {
        let woken = wait(&mut waiting, signals, intervals.until());
        match woken.context("cannot wait for the targets")? {
            Wake::Signal(_) | Wake::Ended => break,
            Wake::Time => intervals.tick(&mut counters, printer)?,
        }
        if intervals.is_over() {
            break;
        }
    }
    counters.disable()?;
    let wall = intervals.elapsed();
    if !intervals.finish(&mut counters, printer)? {
        let run = Measurement {
            counts: counters.read()?,
            wall,
            usage: None,
        };
        let report = Report::new(&counters.rows, &[run]);
        let places = places(flags, &intervals, &mut counters)?;
        printer.summary(&report, &places)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open(flags: &StatFlags, selection: &Selection) -> Result<Counters> {
    // A descriptor for each event and thread or CPU.
    prof_events::system::raise_limits();
    let processes = flags.pids.iter().map(|&pid| Target::Process(pid));
    let threads = flags.tids.iter().map(|&tid| Target::Thread(tid));
    let mut targets: Vec<Target> = processes.chain(threads).collect();
    targets.extend(flags.cgroup.clone().map(Target::Cgroup));
    targets.extend(flags.all_cpus.then_some(Target::AllCpus));
    // If threads are listed separately, a thread's count must not contain those of the threads that
    // it creates.
    let alone =
        flags.no_inherit || flags.is_system_wide() || flags.per_thread || !flags.tids.is_empty();
    let inherit = if alone {
        Inherit::No
    } else {
        Inherit::Children
    };
    let options = Options {
        inherit,
        ..Options::default()
    };
    Counters::open(
        selection,
        &targets,
        Terms {
            options,
            usage: false,
        },
    )
}

/// Descriptors that become readable when the targets end. Threads have none on older kernels; then
/// only a signal ends the counting.
fn ends(flags: &StatFlags) -> Vec<OwnedFd> {
    /// `PIDFD_THREAD` (Linux 6.9) of include/uapi/linux/pidfd.h.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);
    let processes = flags.pids.iter().map(|&pid| (pid, PidfdFlags::empty()));
    let threads = flags.tids.iter().map(|&tid| (tid, THREAD));
    let both = processes.chain(threads);
    both.filter_map(|(id, flags)| rustix::process::pidfd_open(Pid::from_raw(id)?, flags).ok())
        .collect()
}

/// The counts of each thread or CPU, if they are listed separately.
pub(super) fn places(
    flags: &StatFlags,
    intervals: &Intervals,
    counters: &mut Counters,
) -> Result<Vec<(Prefix, Report)>> {
    if !flags.per_thread {
        return Ok(Vec::new());
    }
    let wall = intervals.elapsed();
    let look = intervals.look(counters)?;
    let places = look.into_iter().map(|(place, counts)| {
        let run = Measurement {
            counts,
            wall,
            usage: None,
        };
        let prefix = Prefix {
            time: None,
            place: intervals.name(place),
        };
        (prefix, Report::new(&counters.rows, &[run]))
    });
    Ok(places.collect())
}
