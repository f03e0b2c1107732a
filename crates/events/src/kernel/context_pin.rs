//! Keeps a thread's events with the thread.

use std::os::fd::{AsRawFd, OwnedFd};

use prof_model::Tid;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::kernel;

/// Keeps the events of a thread with it, until it is dropped.
///
/// Between threads whose events are copies of each other's, the kernel prefers to swap all events
/// rather than switch them (`perf_event_context_sched_out` in kernel/events/core.c). A pin prevents
/// that for the events of its thread.
#[derive(Debug)]
pub struct ContextPin {
    _event: OwnedFd,
}

impl ContextPin {
    /// Opens an event that counts nothing and is not inherited, so that the events of this thread
    /// are not copies of another's.
    ///
    /// # Errors
    ///
    /// ESRCH if the thread has ended; EACCES; EMFILE if at most a quarter of the process's
    /// descriptors is left, which others need more.
    pub fn on(tid: Tid) -> Result<Self, Errno> {
        let event = kernel::open_context_pin(tid)?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // The lowest number that is free is taken.
        match event.as_raw_fd() as u64 >= limit / 4 * 3 {
            true => Err(Errno::MFILE),
            false => Ok(Self { _event: event }),
        }
    }
}
