//! The weights of stacks.

use serde::{Deserialize, Serialize};

use crate::stack::StackEnd;

/// The weights of samples with a user stack: allocated bytes, or periods that vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackWeights {
    /// All of them.
    pub all: u64,
    /// Those of stacks that are not whole.
    pub partial: u64,
}

impl StackWeights {
    /// Counts one more sample whose user stack ended like this.
    pub fn count(&mut self, end: StackEnd, weight: u64) {
        if end.counts() {
            self.all = self.all.saturating_add(weight);
        }
        if end.counts() && !end.is_whole() {
            self.partial = self.partial.saturating_add(weight);
        }
    }

    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }
}
