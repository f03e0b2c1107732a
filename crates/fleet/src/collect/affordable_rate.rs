//! The rate of samples that the bound on CPU time allows.

use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A rate that falls if sampling costs more than the bound, and rises again once it costs less.
#[derive(Debug)]
pub(super) struct AffordableRate {
    hertz: u64,
    /// The bound: CPU seconds a second.
    bound: f64,
}

/// The CPU time of this process since a moment.
#[derive(Debug)]
pub(super) struct CpuUse {
    begin: Instant,
    before: Duration,
}

impl AffordableRate {
    /// The highest rate.
    const USUAL: u64 = 19;
    /// The share of the machine's CPU time: 0.5 % of a core for two CPUs.
    const SHARE: f64 = 0.0025;
    /// A new rate uses this part of the bound, so that it can stay.
    const AIM: f64 = 0.9;

    pub(super) fn of_this_machine() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            hertz: Self::USUAL,
            bound: Self::SHARE * cpus as f64,
        }
    }

    pub(super) fn hertz(&self) -> u64 {
        self.hertz
    }

    /// Chooses the next rate after sampling at this one had this cost, in CPU seconds a second.
    /// Returns a line for people if it is another one.
    pub(super) fn adapt(&mut self, cost: f64) -> Option<String> {
        let affordable = self.hertz as f64 * Self::AIM * self.bound / cost;
        let next = match affordable as u64 {
            lower if cost > self.bound => lower.clamp(1, Self::USUAL),
            higher => higher.clamp(self.hertz, Self::USUAL),
        };
        let before = std::mem::replace(&mut self.hertz, next);
        (next != before).then(|| {
            format!(
                "sampling at {before} Hz used {:.2} % of a core, of {:.2} % that it may use: it goes on \
                 at {next} Hz",
                100.0 * cost,
                100.0 * self.bound,
            )
        })
    }
}

impl CpuUse {
    pub(super) fn begin() -> Self {
        Self {
            begin: Instant::now(),
            before: cpu_time(),
        }
    }

    /// CPU seconds a second.
    pub(super) fn so_far(&self) -> f64 {
        let used = cpu_time().saturating_sub(self.before);
        used.as_secs_f64() / self.begin.elapsed().as_secs_f64()
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_cost() {
        let mut rate = AffordableRate {
            hertz: 19,
            bound: 0.005,
        };
        assert_eq!(rate.adapt(0.0049), None);
        let line = rate.adapt(0.0075).unwrap();
        assert!(
            line.starts_with("sampling at 19 Hz used 0.75 % of a core, of 0.50 %"),
            "{line}"
        );
        assert_eq!(rate.hertz(), 11);
        assert_eq!(rate.adapt(0.0049), None);
        assert_eq!(rate.adapt(0.0043), None);
        rate.adapt(0.0022).unwrap();
        assert_eq!(rate.hertz(), 19);
        rate.adapt(1.0).unwrap();
        assert_eq!(rate.hertz(), 1);
        rate.adapt(0.0).unwrap();
        assert_eq!(rate.hertz(), 19);
    }

    #[test]
    fn our_own_cpu_time_is_counted() {
        let cpu = CpuUse::begin();
        while cpu.so_far() == 0.0 {}
        assert!(cpu.so_far() < 1000.0);
    }
}
