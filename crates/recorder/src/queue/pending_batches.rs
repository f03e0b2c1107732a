//! Batches that are still in use.

use std::collections::VecDeque;

use crate::queue::batch::Batch;

/// Batches with records that wait in the sorter.
#[derive(Debug, Default)]
pub(crate) struct PendingBatches {
    batches: VecDeque<(Batch, usize)>,
    /// The index of the first of them.
    first: u64,
}

impl PendingBatches {
    /// The index of the next batch.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.batches.len() as u64
    }

    pub(crate) fn push(&mut self, batch: Batch) {
        let records = batch.len();
        self.batches.push_back((batch, records));
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Batch> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.batches.get(index).map(|(batch, _)| batch)
    }

    /// One of the batch's records was processed.
    pub(crate) fn done_with(&mut self, number: u64) {
        let index = number.checked_sub(self.first).map(|index| index as usize);
        if let Some((_, left)) = index.and_then(|index| self.batches.get_mut(index)) {
            *left = left.saturating_sub(1);
        }
    }

    /// The oldest batch, if all its records were processed.
    pub(crate) fn pop_done(&mut self) -> Option<Batch> {
        let (_, left) = self.batches.front()?;
        if *left > 0 {
            return None;
        }
        self.first += 1;
        self.batches.pop_front().map(|(batch, _)| batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(records: usize) -> Batch {
        let mut batch = Batch::default();
        (0..records).for_each(|_| batch.push(|bytes| bytes.push(1)));
        batch
    }

    #[test]
    fn batches_leave_in_order_when_all_their_records_are_done() {
        let mut pending = PendingBatches::default();
        for records in [1, 2, 0] {
            pending.push(batch(records));
        }
        assert_eq!(pending.next(), 3);
        pending.done_with(1);
        assert!(pending.pop_done().is_none(), "the first still waits");
        pending.done_with(0);
        assert_eq!(pending.pop_done().map(|batch| batch.len()), Some(1));
        assert!(pending.pop_done().is_none());
        assert!(pending.get(0).is_none() && pending.get(1).is_some());
        pending.done_with(1);
        assert_eq!(pending.pop_done().map(|batch| batch.len()), Some(2));
        assert_eq!(pending.pop_done().map(|batch| batch.len()), Some(0));
        assert_eq!((pending.next(), pending.pop_done().is_none()), (3, true));
    }
}
