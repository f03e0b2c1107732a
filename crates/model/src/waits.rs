//! How much of the time that threads do not run is in the recording.

use serde::{Deserialize, Serialize};

/// Waits whose stacks were read while the thread slept, which comes too late for short ones; and
/// times that are no waits. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitCoverage {
    /// All waits.
    pub waits: u64,
    /// Waits with a stack.
    pub seen: u64,
    /// The time of all waits.
    pub time: u64,
    /// The time of the waits with a stack.
    pub seen_time: u64,
    /// The time of short waits that are counted with others of the same thread and length.
    pub placed_time: u64,
    /// The time of the waits whose stacks are not whole, and of those counted with them.
    pub partial_time: u64,
    /// The time for which threads were ready to run, and others had the CPUs.
    pub ready_time: u64,
}

impl WaitCoverage {
    /// Adds the waits of another recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.seen += other.seen;
        self.time += other.time;
        self.seen_time += other.seen_time;
        self.placed_time += other.placed_time;
        self.partial_time += other.partial_time;
        self.ready_time += other.ready_time;
    }

    /// Whether threads were ready to run, without a CPU, for a good part of the time that they did
    /// not run.
    pub(crate) fn has_much_ready_time(&self) -> bool {
        const A_PART: u64 = 20;
        self.ready_time.saturating_mul(A_PART) > self.time.saturating_add(self.ready_time)
    }

    /// Nanoseconds of waiting with a known stack.
    pub(crate) fn known_time(&self) -> u64 {
        self.seen_time.saturating_add(self.placed_time)
    }

    /// Nanoseconds of waiting without a known stack.
    pub(crate) fn unseen_time(&self) -> u64 {
        self.time.saturating_sub(self.known_time())
    }
}
