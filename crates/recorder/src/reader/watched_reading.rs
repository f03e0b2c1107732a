//! What a watcher reads, for the reader of the rings to see whether it hangs.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use prof_events::system;
use prof_model::Pid;

use crate::live::target_memory::MEMORY_TIME_OUT;

/// What a watcher reads.
#[derive(Debug, Default)]
pub(super) struct WatchedReading {
    /// Since when, by the clock of the records; 0: it does not read.
    since: AtomicU64,
    of: AtomicI32,
    /// Whether it looks at the records of its ring.
    looks: AtomicBool,
    /// Whether nobody waits for it any more.
    is_left: AtomicBool,
}

impl WatchedReading {
    /// The watcher begins to look at its ring, or has looked.
    pub(super) fn set_looks(&self, looks: bool) {
        self.looks.store(looks, Ordering::Release);
    }

    /// Whether it is about to have read the samples that its ring has.
    pub(super) fn is_about_to_end(&self) -> bool {
        self.looks.load(Ordering::Acquire) && self.hangs().is_none()
    }

    /// The watcher begins to read a process.
    pub(super) fn begin(&self, pid: Pid) {
        self.of.store(pid, Ordering::Relaxed);
        self.since.store(system::monotonic_now(), Ordering::Release);
    }

    /// It has read.
    pub(super) fn end(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// The process that it has been reading for too long.
    pub(super) fn hangs(&self) -> Option<Pid> {
        let since = self.since.load(Ordering::Acquire);
        let age = system::monotonic_now().saturating_sub(since);
        (since > 0 && u128::from(age) >= MEMORY_TIME_OUT.as_nanos())
            .then(|| self.of.load(Ordering::Relaxed))
    }

    /// Ends the watcher as soon as it goes on.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_readings_hang() {
        let reading = WatchedReading::default();
        assert_eq!(reading.hangs(), None);
        reading.begin(7);
        let begun = reading.since.load(Ordering::Relaxed);
        let long = MEMORY_TIME_OUT.as_nanos() as u64;
        reading.since.store(begun - long, Ordering::Relaxed);
        assert_eq!(reading.hangs(), Some(7));
        reading.end();
        assert_eq!(reading.hangs(), None);
    }
}
