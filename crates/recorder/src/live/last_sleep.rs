//! Whether a sample ended the sleep of the thread that reads it.

use prof_events::{current_cpu, system};
use prof_perfdata::Sample;

/// The last sleep of a thread that samples wake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSleep {
    /// Its start, by the clock of the records.
    began: u64,
}

impl LastSleep {
    /// The longest time from a sample to the start of the thread that it wakes, in nanoseconds, if
    /// that gets the CPU at once: twice as long as in a virtual machine.
    const AT_ONCE: u64 = 300_000;

    /// A sleep that starts now.
    pub(crate) fn begin() -> Self {
        let began = system::monotonic_now();
        Self { began }
    }

    /// Whether the sample woke this thread on its own CPU, where the sampled thread waits until
    /// this one is done.
    pub(crate) fn ended_by(self, sample: &Sample<'_>) -> bool {
        let (Some(time), Some(cpu)) = (sample.time, sample.cpu) else {
            return false;
        };
        time > self.began
            && cpu == current_cpu()
            && system::monotonic_now().saturating_sub(time) < Self::AT_ONCE
    }
}
