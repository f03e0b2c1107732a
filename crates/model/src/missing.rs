//! Stack memory that could not be read.

use serde::{Deserialize, Serialize};

use crate::quality::{Quality, add};
use crate::settings::CallGraphSettings;
use crate::stack::{StackEnd, StackNote};

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

impl Quality {
    /// Counts why memory of one more stack is missing, if its walk ended because of that.
    pub fn count_missing(&mut self, note: StackNote) {
        use StackEnd::{OtherStack, Stale, TruncatedDump, UnreadableMemory};
        let missing = note.missing;
        let is_cause = matches!(
            note.end,
            TruncatedDump | UnreadableMemory | Stale | OtherStack
        );
        if is_cause && missing != MissingMemory::NONE {
            let counts = self.missing.entry(note.end).or_default();
            add(&mut counts.far, missing.is_far.into());
            add(&mut counts.denied, missing.is_denied.into());
            add(&mut counts.ended, missing.has_ended.into());
        }
    }

    /// Whether most of the stacks that ended so lack memory for this reason.
    pub(crate) fn is_mostly(&self, end: StackEnd, reason: fn(&MissingCounts) -> u64) -> bool {
        let stacks = self.stacks.get(&end).copied().unwrap_or(0);
        let counts = self.missing.get(&end).map_or(0, reason);
        counts > stacks / 2
    }
}
