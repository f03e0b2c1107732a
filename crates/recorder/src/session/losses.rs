//! Records that were lost before they reached the session.

use prof_perfdata::{Lost, Stamp, WriteError, encode};

use super::{Session, SessionEvent};
use crate::queue::record_queue::ReaderCounts;

impl Session {
    /// Counts the losses of the reader. Readers of a stream get them as records, like other losses.
    pub(super) fn count_reader_losses(&mut self, counts: ReaderCounts) -> Result<(), WriteError> {
        self.statistics
            .count_reader(counts, self.known_losses.reader);
        let dropped = counts
            .dropped
            .saturating_sub(self.known_losses.reader.dropped);
        self.known_losses.reader = counts;
        match self.events.first() {
            Some(SessionEvent { attr, .. }) if dropped > 0 => {
                let lost = Lost {
                    stamp: Stamp::default(),
                    count: dropped,
                };
                self.out.clear();
                encode::lost(&mut self.out, attr, &lost);
                self.output.files.write_streamed(&self.out)
            }
            _ => Ok(()),
        }
    }
}
