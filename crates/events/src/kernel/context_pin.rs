//! What keeps a thread's events with it.

use std::os::fd::{AsRawFd, OwnedFd};

use prof_model::Tid;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::kernel;

/// Keeps the events of a thread, as long as it is held.
///
/// Between threads whose events are copies of each other's, the kernel likes to swap all events
/// rather than switch them (`perf_event_context_sched_out` in kernel/events/core.c). While there is
/// a pin, those of its thread are swapped with nobody's.
#[derive(Debug)]
pub struct ContextPin {
    _event: OwnedFd,
}

impl ContextPin {
    /// Opens an event that counts nothing and is not inherited, so that the events of this thread
    /// are no copies of anybody's.
    ///
    /// # Errors
    ///
    /// ESRCH when the thread has ended; EACCES; EMFILE when no more than a quarter of the
    /// descriptors that the process may have are left, which others need more.
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
