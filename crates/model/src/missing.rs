//! Stack memory that could not be read.

use serde::{Deserialize, Serialize};

use crate::settings::CallGraphSettings;

/// Why memory of a stack could not be read, as far as it matters for what helps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MissingMemory {
    /// It is so far from the stack pointer that no copy of the stack could hold it.
    pub is_far: bool,
    /// The kernel denies access to the process.
    pub is_denied: bool,
    /// The process had ended.
    pub has_ended: bool,
}

impl MissingMemory {
    /// Nothing is known to be missing.
    pub const NONE: Self = Self {
        is_far: false,
        is_denied: false,
        has_ended: false,
    };

    /// Memory at `address` is needed, and the copy of the stack begins at `start`.
    pub fn needs(&mut self, address: u64, start: u64) {
        self.is_far |= address.wrapping_sub(start) >= CallGraphSettings::LARGEST_DUMP.into();
    }
}

/// How many stacks lack memory for these reasons; one stack can have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingCounts {
    /// It is so far from the stack pointer that no copy of the stack could hold it.
    pub far: u64,
    /// The kernel denied access to the process.
    pub denied: u64,
    /// The process had ended.
    pub ended: u64,
}

impl MissingCounts {
    /// Counts one more stack.
    pub(crate) fn count(&mut self, missing: MissingMemory) {
        self.add(&Self {
            far: missing.is_far.into(),
            denied: missing.is_denied.into(),
            ended: missing.has_ended.into(),
        });
    }

    /// Adds the counts of other stacks.
    pub(crate) fn add(&mut self, more: &Self) {
        self.far = self.far.saturating_add(more.far);
        self.denied = self.denied.saturating_add(more.denied);
        self.ended = self.ended.saturating_add(more.ended);
    }
}
