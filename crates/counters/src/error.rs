//! The errors.

use std::io;

use prof_events::counting::CgroupError;
use prof_model::{Pid, Tid};
use rustix::io::Errno;
use thiserror::Error;

/// Why an event cannot be counted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The kernel refused.
    #[error("cannot count {event}: {reason}")]
    Refused {
        /// The event, with its modifiers.
        event: String,
        /// The kernel's error.
        errno: Errno,
        /// The reason, and what to do.
        reason: String,
    },
    /// The event could be counted, but not together with the others of the group.
    #[error(
        "{event} does not fit into a group with {members} other events: the CPU has too few \
         counters for all of them; make smaller groups"
    )]
    GroupFull {
        /// The event that does not fit.
        event: String,
        /// How many there were before.
        members: usize,
    },
    /// The event is counted by other hardware than the others of the group.
    #[error("{event} and {other} cannot be in one group: different hardware counts them")]
    MixedPmus {
        /// The event.
        event: String,
        /// A counter of the group.
        other: String,
    },
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(Pid),
    /// No such thread.
    #[error("there is no thread {0}")]
    NoThread(Tid),
    /// No such CPU.
    #[error("there is no CPU {0}, or it is offline")]
    NoCpu(u32),
    /// The cgroup cannot be found.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// Another system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// Whether a permission is missing, so that user code alone may be allowed.
    pub fn is_permission(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                errno: Errno::ACCESS | Errno::PERM,
                ..
            }
        )
    }

    /// Whether the machine does not have the event at all.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                errno: Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO | Errno::INVAL,
                ..
            }
        )
    }
}

/// Why counts cannot be read, or counting not started or stopped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A pinned group did not fit on the hardware and does not count until it is enabled again: its
    /// earlier counts are lost.
    #[error("nothing was counted: the counters are pinned, but other events took the hardware")]
    NotScheduled,
    /// The thread or process has ended. Its counts are still available from
    /// [`read_final`](crate::Group::read_final).
    #[error("{0} has ended")]
    TargetExited(String),
    /// The CPU went offline, and the counters with it.
    #[error("CPU {0} went offline, and its counters stopped")]
    CpuLost(u32),
    /// Another system call failed.
    #[error("cannot read the counters: {0}")]
    System(Errno),
}

/// Two snapshots of different sets of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the snapshots are of different sets of counters ({left} and {right})")]
pub struct DifferentSets {
    /// How many counters the one has.
    pub left: usize,
    /// How many the other has.
    pub right: usize,
}

/// A counter that is not in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the counter is not in this snapshot: it belongs to another group, or was added later")]
pub struct NotInSet;

/// Why a counter cannot be read in user space.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// A hardware counter can only be read on the thread that it counts for.
    #[error("only a counter of the calling thread can be read without a system call")]
    NotThisThread,
    /// An inherited event is the sum of several counters.
    #[error("a counter that children inherit cannot be read without a system call")]
    Inherited,
    /// The event's page cannot be mapped.
    #[error("cannot map the counter's page: {0}")]
    Map(#[from] io::Error),
}
