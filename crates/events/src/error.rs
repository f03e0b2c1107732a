//! Why nothing can be sampled.

use std::io;

use prof_model::{Pid, Tid};
use rustix::io::Errno;
use thiserror::Error;

/// Represents all threads, instead of a thread id.
pub(crate) const EVERYBODY: Tid = -1;

/// Why nothing can be sampled. The messages say what was tried, the kernel's error, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// perf_event_open refused.
    #[error("cannot sample {event}{} on CPU {cpu}: {errno}: {advice}", of_thread(*tid))]
    Open {
        /// The event, such as `cycles:u`.
        event: String,
        /// The thread; -1 for all threads.
        tid: Tid,
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        errno: Errno,
        /// What to do.
        advice: String,
    },
    /// The event opens, but not together with the others of its group.
    #[error("cannot sample {event} in one group with {leader}: {reason}")]
    Group {
        /// The event.
        event: String,
        /// The group's leader.
        leader: String,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A ring buffer is unavailable.
    #[error("cannot map {} of {bytes} bytes each: {errno}: {advice}", rings(*cpus))]
    Ring {
        /// Bytes per CPU, the smallest size tried.
        bytes: u64,
        /// Number of CPUs.
        cpus: usize,
        /// The kernel's error.
        errno: Errno,
        /// What to do.
        advice: String,
    },
    /// A process to sample is not there.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its id.
        pid: Pid,
    },
    /// A thread to sample is not there.
    #[error("there is no thread {tid}")]
    NoThread {
        /// Its id.
        tid: Tid,
    },
    /// A CPU to sample is not there, or offline.
    #[error("CPU {cpu} is not online: {online} are")]
    NoCpu {
        /// Its number.
        cpu: u32,
        /// The CPUs that are online.
        online: String,
    },
    /// Something else that the system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn of_thread(tid: Tid) -> String {
    match tid {
        EVERYBODY => String::new(),
        tid => format!(" of thread {tid}"),
    }
}

fn rings(number: usize) -> String {
    match number {
        1 => "a ring buffer".into(),
        more => format!("{more} ring buffers"),
    }
}
