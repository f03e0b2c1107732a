//! Finds the threads to sample, and starts a command.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use prof_events::counting::find_cgroup;
use prof_events::{CpuWide, HeldCommand, Launcher, Program, RunningCommand, Signals, Threads};
use prof_model::{Pid, Tid, printable};
use prof_procfs::{Task, descendants, processes};

use crate::error::Error;
use crate::options::Target;

/// The thread that will fork the command, if there is one.
pub(crate) fn launcher(target: &Target) -> Result<Option<Launcher>, Error> {
    let start = |program: &Program| {
        let launcher = Launcher::start();
        launcher.map_err(|error| not_started(&program.argv, error))
    };
    target.command().map(start).transpose()
}

/// Forks the command, which then waits.
pub(crate) fn hold(
    launcher: Launcher,
    program: &Program,
    signals: &Signals,
) -> Result<HeldCommand, Error> {
    HeldCommand::fork_by(launcher, program, signals)
        .map_err(|error| not_started(&program.argv, error))
}

/// The stages of starting a command.
pub(crate) enum Starting {
    /// The events are open on the thread that will fork it.
    Launcher(Launcher),
    /// It is forked, and the events are open on it.
    Command(HeldCommand),
}

/// The forked command of a target, if it has one.
pub(crate) fn held(
    target: &Target,
    command: Option<Starting>,
    signals: &Signals,
) -> Result<Option<HeldCommand>, Error> {
    match (target.command(), command) {
        (Some(program), Some(Starting::Launcher(launcher))) => {
            hold(launcher, program, signals).map(Some)
        }
        (_, Some(Starting::Command(held))) => Ok(Some(held)),
        _ => Ok(None),
    }
}

/// Lets the command call `exec`.
pub(crate) fn release(held: HeldCommand, program: &Program) -> Result<RunningCommand, Error> {
    held.release()
        .map_err(|error| not_started(&program.argv, error))
}

/// Which threads to open events for.
pub(crate) fn threads(target: &Target, launcher: Option<&Launcher>) -> Result<Threads, Error> {
    Ok(match target {
        Target::Command(_) => Threads::UntilExec(launcher.map_or(0, Launcher::tid)),
        Target::Processes(pids) => Threads::Of(pids.clone()),
        Target::Threads(tids) => Threads::Only(tids.clone()),
        Target::Cpus(target) => {
            let cgroup = target.cgroup.as_deref().map(find_cgroup).transpose()?;
            Threads::OnCpus(CpuWide {
                cpus: target.cpus.clone(),
                cgroup: cgroup.map(Arc::new),
            })
        }
    })
}

/// The running processes that may be sampled.
pub(crate) fn running(target: &Target) -> Vec<Pid> {
    match target {
        Target::Command(_) => Vec::new(),
        Target::Processes(pids) => pids.clone(),
        Target::Threads(tids) => {
            let pids = tids.iter().filter_map(|&tid| Task::of(tid).process());
            let mut pids: Vec<Pid> = pids.collect();
            pids.sort_unstable();
            pids.dedup();
            pids
        }
        // Process 0 stands for idle CPUs. Processes of other cgroups may join this one later.
        Target::Cpus(_) => std::iter::once(0).chain(processes()).collect(),
    }
}

/// The children of the selected processes, and their children, except those that ran `before`:
/// their children inherit no events.
pub(crate) fn children(target: &Target, before: &BTreeSet<Pid>) -> BTreeSet<Pid> {
    match target {
        Target::Command(_) | Target::Cpus(_) => BTreeSet::new(),
        Target::Processes(_) | Target::Threads(_) => descendants(&running(target), before),
    }
}

/// How many of the children that ran `before` are not selected themselves.
pub(crate) fn unrequested(target: &Target, before: &BTreeSet<Pid>) -> u64 {
    match target {
        Target::Processes(pids) => {
            let others = before.iter().filter(|child| !pids.contains(child));
            others.count() as u64
        }
        Target::Command(_) | Target::Threads(_) | Target::Cpus(_) => 0,
    }
}

/// One of the requested processes that is stopped now.
pub(crate) fn stopped(target: &Target) -> Option<Pid> {
    let is_stopped = |pid: &Pid| {
        Task::of(*pid)
            .stat()
            .is_ok_and(|stat| stat.state.is_stopped())
    };
    match target {
        Target::Processes(_) | Target::Threads(_) => running(target).into_iter().find(is_stopped),
        Target::Command(_) | Target::Cpus(_) => None,
    }
}

/// The current threads of the selected processes and threads.
pub(crate) fn threads_now(target: &Target) -> Vec<(Pid, Tid)> {
    match target {
        Target::Command(_) | Target::Cpus(_) => Vec::new(),
        Target::Processes(pids) => {
            let threads = |pid: Pid| {
                let tids = Task::of(pid).threads().unwrap_or_default();
                tids.into_iter().map(move |tid| (pid, tid))
            };
            pids.iter().copied().flat_map(threads).collect()
        }
        Target::Threads(tids) => {
            let thread = |&tid: &Tid| Some((Task::of(tid).process()?, tid));
            tids.iter().filter_map(thread).collect()
        }
    }
}

fn not_started(argv: &[OsString], source: io::Error) -> Error {
    let command = argv
        .first()
        .map(OsString::as_os_str)
        .unwrap_or(OsStr::new(""));
    let command = printable(&command.to_string_lossy()).into_owned();
    match source.kind() {
        io::ErrorKind::NotFound => Error::CommandNotFound { command },
        _ => Error::CommandNotStarted { command, source },
    }
}
