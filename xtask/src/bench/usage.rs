//! The usage of a running process so far.

use std::fs;
use std::time::Instant;

use super::machine::TICKS_PER_SECOND;

/// A reading of a process's files in /proc.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Seconds since the measurement began.
    pub(super) time: f64,
    /// Seconds of CPU time, of all its threads.
    pub(super) cpu: f64,
    /// Memory that it has at that moment, in bytes, with the rings.
    pub(super) memory: u64,
}

impl Usage {
    /// `None` if the process has ended.
    pub(super) fn of(pid: u32, begin: Instant) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let ticks = fields.split(' ').skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kilobytes = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
            number
                .and_then(|number| number.trim().parse().ok())
                .unwrap_or(0)
        };
        Some(Usage {
            time: begin.elapsed().as_secs_f64(),
            cpu: ticks as f64 / TICKS_PER_SECOND,
            // The rings are pinned, and no part of the resident set.
            memory: (kilobytes("VmRSS:") + kilobytes("VmPin:")) << 10,
        })
    }

    /// CPU time that it used between the two, in percent of a core.
    pub(super) fn percent_until(&self, later: &Usage) -> f64 {
        100.0 * (later.cpu - self.cpu) / (later.time - self.time)
    }
}
