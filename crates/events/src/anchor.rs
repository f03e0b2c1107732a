//! What keeps a thread's events with it.

use std::os::fd::OwnedFd;

use prof_model::Tid;
use rustix::io::Errno;

use crate::kernel;

/// Keeps the events of a thread, as long as it is held.
///
/// Between threads whose events are copies of each other's, the kernel likes to swap all events
/// rather than switch them (`perf_event_context_sched_out` in kernel/events/core.c). While there is
/// an anchor, those of its thread are swapped with nobody's.
#[derive(Debug)]
pub struct Anchor {
    _event: OwnedFd,
}

impl Anchor {
    /// Opens an event that counts nothing and is not inherited, so that the events of this thread
    /// are no copies of anybody's.
    ///
    /// # Errors
    ///
    /// ESRCH when the thread has ended; EACCES; EMFILE.
    pub fn on(tid: Tid) -> Result<Self, Errno> {
        let event = kernel::open_anchor(tid)?;
        Ok(Self { _event: event })
    }
}
