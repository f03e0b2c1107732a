//! How much memory prof takes.

use std::fs;

use crate::worker::only_child;

/// The most memory that a running prof takes.
#[derive(Debug)]
pub struct PeakMemory {
    started: u32,
    worker: Option<u32>,
    bytes: u64,
}

impl PeakMemory {
    /// Of the process that was started, whose only child does the work.
    pub fn of(started: u32) -> Self {
        Self {
            started,
            worker: None,
            bytes: 0,
        }
    }

    /// Looks again. Returns the most memory that the work has taken until then, in bytes; 0 if it
    /// has not begun.
    pub fn look(&mut self) -> u64 {
        self.worker = self.worker.or_else(|| only_child(self.started));
        let now = self.worker.and_then(peak_of);
        self.bytes = self.bytes.max(now.unwrap_or(0));
        self.bytes
    }
}

/// `None` once it has ended.
fn peak_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}
