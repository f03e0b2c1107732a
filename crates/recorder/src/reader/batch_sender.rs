//! Batches on their way to the session.

use prof_events::system;

use crate::queue::batch::{Batch, ReaderCounts};
use crate::queue::record_queue::{FreeSpace, RecordQueue};

/// Begins batches, and sends them with the reader's counts.
pub(super) struct BatchSender<'a> {
    pub(super) queue: &'a RecordQueue,
    pub(super) counts: ReaderCounts,
    /// Whether the last batch had records: then another must follow for the order of time.
    had_records: bool,
}

impl<'a> BatchSender<'a> {
    pub(super) fn new(queue: &'a RecordQueue) -> Self {
        Self {
            queue,
            counts: ReaderCounts::default(),
            had_records: false,
        }
    }

    /// A batch for the records of a pass that begins now.
    pub(super) fn begin(&self) -> (Batch, FreeSpace) {
        let (mut batch, space) = self.queue.start();
        batch.begun = system::monotonic_now();
        (batch, space)
    }

    /// Sends the batch of a pass. After the last pass with records, one empty batch says that
    /// everything before it is complete.
    pub(super) fn send(&mut self, mut batch: Batch, at_once: bool) {
        let has_records = !batch.is_empty();
        if has_records || self.had_records {
            batch.counts = self.counts;
            self.queue.push(batch, at_once);
        } else {
            self.queue.return_unused(batch);
        }
        self.had_records = has_records;
    }

    /// Makes the session continue in another file.
    pub(super) fn rotate(&self) {
        let (mut batch, _) = self.begin();
        batch.rotates = true;
        batch.counts = self.counts;
        self.queue.push(batch, true);
    }
}
