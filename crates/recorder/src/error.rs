//! Why a recording could not be made.

use std::io;
use std::path::PathBuf;

use prof_model::Pid;
use thiserror::Error;

/// Why a recording could not be made. The messages are for people: what failed, why, what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command was not found: shells exit 127.
    #[error("{command}: command not found")]
    CommandNotFound {
        /// The command as given.
        command: String,
    },
    /// The command cannot be executed: shells exit 126.
    #[error("cannot start {command}: {source}")]
    CommandNotStarted {
        /// The command as given.
        command: String,
        /// What `exec` or `fork` answered.
        source: io::Error,
    },
    /// Writing failed on the way (the disk is full). What was written before can be read.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: prof_perfdata::WriteError,
    },
    /// The events cannot be described in a file, which would be a bug.
    #[error("cannot describe the events: {0}")]
    Format(#[from] prof_perfdata::Error),
    /// The output cannot be created.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// There is no such cgroup.
    #[error(transparent)]
    Cgroup(#[from] prof_events::counting::CgroupError),
    /// Nothing can be sampled.
    #[error(transparent)]
    Events(#[from] prof_events::Error),
    /// A process may not be stopped, which is the only means left, or the one asked for.
    #[error("cannot trace process {pid}: {source}: {advice}")]
    Tracing {
        /// The process.
        pid: Pid,
        /// What ptrace answered.
        source: io::Error,
        /// What to do.
        advice: String,
    },
    /// Stops cannot stand for what was to be sampled by.
    #[error(
        "the ptrace sampler shows the CPU time of user code, no other events: leave out -e, or \
         use -e cpu-clock:u"
    )]
    NotByStops,
    /// Stops are for threads, not for CPUs.
    #[error(
        "the ptrace sampler samples commands, processes and threads, not whole CPUs: leave out \
         -a, -C and --cgroup"
    )]
    NotOfCpus,
    /// New threads and children are traced with those that make them.
    #[error(
        "the ptrace sampler follows all threads and children: leave out -i (--no-inherit) and the term \
         no-inherit"
    )]
    FollowsChildren,
    /// Events that are not inherited belong to one run of the command.
    #[error(
        "events that are not inherited (-i, no-inherit) sample the first run only: leave out --repeat"
    )]
    OnlyFirstRun,
    /// What is traced is one command.
    #[error("the ptrace sampler runs a command only once: leave out --repeat")]
    OnlyOnce,
    /// Several files do not go through one pipe.
    #[error("-o - writes one recording: several (--switch-output, --snapshot) need a file name")]
    OnePipe,
    /// The system refused something while recording.
    #[error("recording failed: {source}")]
    Sampling {
        /// What the system answered.
        source: io::Error,
    },
}

impl Error {
    /// The system refused something while recording.
    pub(crate) fn sampling(source: std::io::Error) -> Self {
        Self::Sampling { source }
    }
}
