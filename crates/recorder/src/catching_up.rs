//! Keeping up with the rings where others want the CPU as well.
//!
//! Where more threads want to run than there are CPUs, unwinding gets its share like each of them,
//! and samples come faster than that. While the backlog fills, it runs ahead of ordinary threads, if
//! the user may: the targets among them run slower then, and are sampled the less often.

use prof_events::system::{self, Ahead};

use crate::backlog::Backlog;

/// Whether the calling thread runs ahead of others.
#[derive(Debug, Default)]
pub(crate) struct CatchingUp(bool);

impl CatchingUp {
    /// Runs ahead from when the backlog is a quarter full until it is almost empty.
    pub(crate) fn follow(&mut self, backlog: &Backlog) {
        let percent = backlog.percent_full();
        if !self.0 && percent >= 25 {
            system::raise_thread_priority(Ahead::OfOrdinary);
        } else if self.0 && percent < 5 {
            system::lower_thread_priority();
        } else {
            return;
        }
        self.0 = !self.0;
    }
}

impl Drop for CatchingUp {
    /// The thread is the caller's again, which has other things to do.
    fn drop(&mut self) {
        if self.0 {
            system::lower_thread_priority();
        }
    }
}
