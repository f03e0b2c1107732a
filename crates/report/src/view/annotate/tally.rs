//! Weights of things that stacks may hold more than once.

use crate::profile::Weight;

/// Own and total weights by number. A stack counts once for each number that is on it, however
/// often it is there.
pub(super) struct Tally {
    pub(super) own: Vec<Weight>,
    pub(super) total: Vec<Weight>,
    /// The last stack that each number was on.
    last: Vec<u32>,
    stack: u32,
    weight: Weight,
}

impl Tally {
    /// A tally for indices below `count`.
    pub(super) fn new(count: usize) -> Self {
        Self {
            own: vec![Weight::default(); count],
            total: vec![Weight::default(); count],
            last: vec![0; count],
            stack: 0,
            weight: Weight::default(),
        }
    }

    /// Starts another stack, with this weight.
    pub(super) fn start(&mut self, weight: Weight) {
        self.stack += 1;
        self.weight = weight;
    }

    /// Adds an index of the stack; `is_own` if it is the sampled one.
    pub(super) fn add(&mut self, number: usize, is_own: bool) {
        if is_own {
            self.own[number] += self.weight;
        }
        if self.last[number] != self.stack {
            self.last[number] = self.stack;
            self.total[number] += self.weight;
        }
    }
}
