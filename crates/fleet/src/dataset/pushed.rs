//! Stacks that a data set has from us: most stacks of a service are the same in each recording.

use rustc_hash::FxHashMap;

use super::number::NumberedStack;
use super::partition::Partition;
use crate::table::StackHash;

/// The stacks of the runs that were pushed completely, so that the next run brings only new ones.
#[derive(Debug, Default)]
pub(super) struct PushedStacks {
    /// How many functions have symbols in the stacks that are there, by day and service.
    named: FxHashMap<(String, String), FxHashMap<StackHash, i32>>,
    /// How many stacks these are.
    len: usize,
}

impl PushedStacks {
    /// The most stacks that are remembered, of 20 bytes each; of more, all are forgotten.
    const MOST: usize = 1 << 17;

    /// Whether a stack of a partition is not there, or has fewer symbols there.
    pub(super) fn lack(&self, partition: &Partition) -> impl Fn(&NumberedStack) -> bool {
        let known = self.named.get(&key(partition));
        move |stack| {
            let named = known.and_then(|known| known.get(&stack.hash));
            named.is_none_or(|&named| named < stack.named)
        }
    }

    /// Remembers stacks of a run that is there.
    pub(super) fn add(&mut self, partition: &Partition, stacks: &[NumberedStack]) {
        if self.len + stacks.len() > Self::MOST {
            *self = Self::default();
        }
        let stacks = &stacks[..stacks.len().min(Self::MOST)];
        self.len += stacks.len();
        let named = stacks.iter().map(|stack| (stack.hash, stack.named));
        self.named.entry(key(partition)).or_default().extend(named);
    }
}

/// Stacks of all machines are in one partition.
fn key(partition: &Partition) -> (String, String) {
    (partition.date.clone(), partition.service.clone())
}
