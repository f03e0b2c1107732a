//! How much of the waiting was seen, where not all was.

use serde::{Deserialize, Serialize};

/// Waits of threads that were looked at while they slept, which comes too late for short ones.
/// Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitCoverage {
    /// All waits.
    pub waits: u64,
    /// Those with a stack.
    pub seen: u64,
    /// How long all took.
    pub time: u64,
    /// How long those with a stack took.
    pub seen_time: u64,
    /// How long those took that are counted with others of the same thread and length.
    pub placed_time: u64,
}

impl WaitCoverage {
    /// Adds those of another recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.seen += other.seen;
        self.time += other.time;
        self.seen_time += other.seen_time;
        self.placed_time += other.placed_time;
    }

    /// Nanoseconds that no stack is known for.
    pub(crate) fn unseen_time(&self) -> u64 {
        let known = self.seen_time.saturating_add(self.placed_time);
        self.time.saturating_sub(known)
    }
}
