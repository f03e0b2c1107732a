//! Why a recording failed.

use std::io;
use std::path::PathBuf;

use prof_events::tracing::Errno;
use prof_model::Pid;
use thiserror::Error;

/// Why a recording failed. The messages are for users: what failed, why, what to do.
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
    #[error("cannot start {command}: {source}{}", remedy_for_limit(source))]
    CommandNotStarted {
        /// The command as given.
        command: String,
        /// The error of `exec` or `fork`.
        source: io::Error,
    },
    /// Writing failed midway (the disk is full). The file so far can be read.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
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
        /// The system's error.
        source: io::Error,
    },
    /// There is no such cgroup.
    #[error(transparent)]
    Cgroup(#[from] prof_events::counting::CgroupError),
    /// Nothing can be sampled.
    #[error(transparent)]
    Events(#[from] prof_events::Error),
    /// A process may not be traced, and ptrace is the only way left or was requested.
    #[error("cannot trace process {pid}: {source}: {advice}")]
    Tracing {
        /// The process.
        pid: Pid,
        /// The error of ptrace.
        source: io::Error,
        /// What to do.
        advice: String,
    },
    /// The ptrace sampler cannot replace the requested event.
    #[error(
        "the ptrace sampler shows the CPU time of user code, no other events, waits or \
         allocations: leave out -e, --off-cpu, --wall and --alloc"
    )]
    NotByPtrace,
    /// The ptrace sampler samples threads, not CPUs.
    #[error(
        "the ptrace sampler samples commands, processes and threads, not whole CPUs: leave out \
         -a, -C and --cgroup"
    )]
    NotOfCpus,
    /// The ptrace sampler always traces new threads and children.
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
    /// The ptrace sampler traces one run of a command.
    #[error("the ptrace sampler runs a command only once: leave out --repeat")]
    OnlyOnce,
    /// A pipe takes only one file.
    #[error("-o - writes one recording: several (--switch-output, --snapshot) need a file name")]
    OnePipe,
    /// A system call failed while recording.
    #[error("recording failed: {source}{}", remedy_for_limit(source))]
    Sampling {
        /// The system's error.
        source: io::Error,
    },
}

/// What helps if no process or thread can be created (EAGAIN).
fn remedy_for_limit(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => {
            ": raise the limit on processes and threads (`ulimit -u`, in a container also the \
             container's)"
        }
        _ => "",
    }
}

impl Error {
    /// Whether the process to be sampled does not exist, or has ended.
    pub fn has_no_target(&self) -> bool {
        match self {
            Self::Events(prof_events::Error::Open { errno, .. }) => *errno == Errno::SRCH,
            Self::Events(prof_events::Error::NoProcess { .. }) => true,
            Self::Tracing { source, .. } => Errno::from_io_error(source) == Some(Errno::SRCH),
            _ => false,
        }
    }

    /// A system call failed while recording.
    pub(crate) fn sampling(source: std::io::Error) -> Self {
        Self::Sampling { source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_processes_is_named() {
        let command = "true".to_owned();
        let source = io::Error::from_raw_os_error(11);
        let error = Error::CommandNotStarted { command, source };
        let error = error.to_string();
        assert!(
            error.starts_with("cannot start true: ") && error.contains("`ulimit -u`"),
            "{error}"
        );
        let denied = Error::sampling(io::Error::from_raw_os_error(13)).to_string();
        assert!(!denied.contains("ulimit"), "{denied}");
    }
}
