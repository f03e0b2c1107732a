//! Which symbols of a table can name the requested addresses: those that cover one, and
//! the nearest ones before and after each.
//!
//! Tables have hundreds of thousands of symbols. Few addresses need few of them, and only theirs
//! have their names read and are sorted.

use std::ops::Range;

/// The starts of the symbols next to each address.
pub(crate) struct Neighbours<'a> {
    /// In order.
    addresses: &'a [u64],
    /// For each address, the highest start that is not above it; 0 if there is none.
    before: Vec<u64>,
    /// For each address, the lowest start above it; the highest address if there is none.
    after: Vec<u64>,
    /// The starts of the symbols that cover an address.
    covering: Vec<u64>,
}

impl<'a> Neighbours<'a> {
    /// Of these addresses, which are in order. All symbols are to be [noted](Self::note) first, and
    /// then [spread](Self::spread).
    pub(crate) fn new(addresses: &'a [u64]) -> Self {
        Self {
            addresses,
            before: vec![0; addresses.len()],
            after: vec![u64::MAX; addresses.len()],
            covering: Vec::new(),
        }
    }

    /// There is a symbol of this range. Most are far from all addresses: only of the others it
    /// matters whether it `is_function`.
    pub(crate) fn note(&mut self, symbol: Range<u64>, is_function: impl FnOnce() -> bool) {
        let Range { start, end } = symbol;
        let next = self.addresses.partition_point(|&address| address < start);
        let covers = self.addresses.get(next).is_some_and(|&it| it < end);
        let before = self.before.get_mut(next);
        let last = next.checked_sub(1);
        let after = last.and_then(|last| self.after.get_mut(last));
        let is_nearer = before.as_ref().is_some_and(|before| **before < start)
            || after.as_ref().is_some_and(|after| **after > start);
        if (covers || is_nearer) && is_function() {
            if let Some(before) = before {
                *before = start.max(*before);
            }
            if let Some(after) = after {
                *after = start.min(*after);
            }
            self.covering.extend(covers.then_some(start));
        }
    }

    /// The neighbours of an address may be those of others as well.
    pub(crate) fn spread(&mut self) {
        let mut highest = 0;
        for before in &mut self.before {
            highest = highest.max(*before);
            *before = highest;
        }
        let mut lowest = u64::MAX;
        for after in self.after.iter_mut().rev() {
            lowest = lowest.min(*after);
            *after = lowest;
        }
        self.covering.sort_unstable();
        self.covering.dedup();
    }

    /// Whether symbols that start here are next to an address, or one of them covers it.
    pub(crate) fn matters(&self, start: u64) -> bool {
        let next = self.addresses.partition_point(|&address| address < start);
        let last = next.checked_sub(1);
        self.before.get(next) == Some(&start)
            || last.and_then(|last| self.after.get(last)) == Some(&start)
            || self.covering.binary_search(&start).is_ok()
    }
}
