//! The CPU time that reading a process takes, kept below a share of one CPU.
//!
//! Whoever reads has a high priority, and the process decides how much there is to read: without a
//! limit, it would take time from its neighbours.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use prof_events::system;
use prof_model::Pid;

/// The CPU time that was spent on each process lately.
#[derive(Debug, Default)]
pub(crate) struct CpuShares {
    windows: Mutex<HashMap<Pid, Window>>,
}

/// The time spent in this window, and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Its number.
    number: u64,
    spent: u64,
    before: u64,
}

impl CpuShares {
    /// The most of one CPU, as the kernel's own sampling may take (`perf_cpu_time_max_percent`).
    const PERCENT: u64 = 25;
    /// The length of a window, in nanoseconds.
    const WINDOW: u64 = 500_000_000;
    /// How many processes are remembered: then those of earlier windows are forgotten.
    const PROCESSES: usize = 1024;

    /// What `read` reads of a process, unless that has had its share.
    pub(crate) fn within<T>(&self, pid: Pid, read: impl FnOnce() -> T) -> Option<T> {
        let now = system::monotonic_now();
        if self.has_had(pid, now) {
            return None;
        }
        let begin = system::thread_cpu_time();
        let result = read();
        let spent = system::thread_cpu_time().saturating_sub(begin);
        self.add(pid, now, spent);
        Some(result)
    }

    fn has_had(&self, pid: Pid, now: u64) -> bool {
        self.with(|windows| windows.get(&pid).is_some_and(|window| window.is_full(now)))
    }

    fn add(&self, pid: Pid, now: u64, spent: u64) {
        self.with(|windows| {
            if windows.len() >= Self::PROCESSES && !windows.contains_key(&pid) {
                let current = now / Self::WINDOW;
                windows.retain(|_, window| window.number >= current);
            }
            windows.entry(pid).or_default().add(now, spent);
        });
    }

    fn with<T>(&self, see: impl FnOnce(&mut HashMap<Pid, Window>) -> T) -> T {
        see(&mut self.windows.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Window {
    /// The window of this time.
    fn at(self, now: u64) -> Self {
        let number = now / CpuShares::WINDOW;
        match number.saturating_sub(self.number) {
            0 => self,
            1 => Self {
                number,
                spent: 0,
                before: self.spent,
            },
            _ => Self {
                number,
                ..Self::default()
            },
        }
    }

    fn add(&mut self, now: u64, spent: u64) {
        *self = self.at(now);
        self.spent = self.spent.saturating_add(spent);
    }

    /// Whether the share is used up: of the window before, as much counts as a window that ends
    /// now overlaps with it.
    fn is_full(self, now: u64) -> bool {
        let Self { spent, before, .. } = self.at(now);
        let rest = CpuShares::WINDOW - now % CpuShares::WINDOW;
        let overlap = u128::from(before) * u128::from(rest) / u128::from(CpuShares::WINDOW);
        u128::from(spent) + overlap >= u128::from(CpuShares::WINDOW * CpuShares::PERCENT / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// How many milliseconds are spent of 10 seconds, if a reading takes this long and there is one
    /// each 10 ms.
    fn spent(reading: u64) -> u64 {
        let shares = CpuShares::default();
        let times = (0..1000).map(|number| 10 * number * MILLISECOND);
        let read = times.filter(|&now| {
            let reads = !shares.has_had(1, now);
            if reads {
                shares.add(1, now, reading * MILLISECOND);
            }
            reads
        });
        read.count() as u64 * reading
    }

    #[test]
    fn a_share_of_a_cpu_is_kept() {
        assert_eq!(spent(1), 1000, "below the share");
        assert_eq!(spent(2), 2000);
        for reading in [3, 4, 8] {
            let spent = spent(reading);
            assert!((2250..3000).contains(&spent), "{reading}: {spent}");
        }
    }

    #[test]
    fn each_process_has_its_own() {
        let shares = CpuShares::default();
        shares.add(1, 0, CpuShares::WINDOW);
        assert!(shares.has_had(1, 0) && !shares.has_had(2, 0));
        assert!(!shares.has_had(1, 3 * CpuShares::WINDOW));
        for pid in 0..5000 {
            shares.add(pid, u64::from(pid as u32) * CpuShares::WINDOW, 1);
        }
        assert!(shares.with(|windows| windows.len()) <= CpuShares::PROCESSES);
    }

    #[test]
    fn time_is_measured() {
        let shares = CpuShares::default();
        let work = || {
            let begin = system::thread_cpu_time();
            while system::thread_cpu_time() < begin + 20 * MILLISECOND {}
        };
        let readings = (0..1000).filter(|_| shares.within(1, work).is_some());
        // Slow machines come to later windows meanwhile.
        assert!(readings.count() < 1000);
    }
}
