//! How much of the waiting time has a stack, if not all has.

use serde::{Deserialize, Serialize};

/// Waits whose stacks were read while the thread slept, which comes too late for short ones. Times
/// are in nanoseconds.
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
}

impl WaitCoverage {
    /// Adds the waits of another recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.seen += other.seen;
        self.time += other.time;
        self.seen_time += other.seen_time;
        self.placed_time += other.placed_time;
    }

    /// Nanoseconds of waiting without a known stack.
    pub(crate) fn unseen_time(&self) -> u64 {
        let known = self.seen_time.saturating_add(self.placed_time);
        self.time.saturating_sub(known)
    }
}
