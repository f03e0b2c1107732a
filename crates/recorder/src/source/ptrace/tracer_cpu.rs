//! Where the tracing thread runs.

use std::time::Duration;

use prof_events::AllowedCpus;

/// The CPU of the tracing thread: that of the thread it stops next.
///
/// An interrupt of another CPU takes some microseconds, in a virtual machine many, and a thread
/// stops sooner if its next system call ends before: calls would get the samples of other code. A
/// timer of its own CPU stops it wherever it is.
pub(super) struct TracerCpu {
    /// The CPUs on which it may run.
    allowed: Option<AllowedCpus>,
    at: Option<u32>,
}

impl TracerCpu {
    /// How long to let a thread run on after having come to its CPU, which it may have noticed.
    const PAUSE: Duration = Duration::from_micros(50);

    pub(super) fn of_this_thread() -> Self {
        Self {
            allowed: AllowedCpus::of_this_thread(),
            at: None,
        }
    }

    /// Moves there, if that is allowed.
    pub(super) fn move_to(&mut self, cpu: u32) {
        if self.at != Some(cpu)
            && let Some(there) = self.allowed.and_then(|allowed| allowed.only(cpu))
            && there.run_there()
        {
            self.at = Some(cpu);
            std::thread::sleep(Self::PAUSE);
        }
    }
}
