//! Records that were lost before they reached the session.

use prof_perfdata::{Lost, Stamp, WriteError, encode};

use super::Session;
use crate::queue::batch::ReaderCounts;

impl Session {
    /// Counts the losses of the reader. Readers of a stream get them as records, like other losses.
    pub(super) fn count_reader_losses(&mut self, counts: ReaderCounts) -> Result<(), WriteError> {
        let dropped = self.statistics.count_reader(counts);
        match self.events.first_attr() {
            Some(attr) if dropped > 0 => {
                let lost = Lost {
                    stamp: Stamp::default(),
                    count: dropped,
                };
                let mut out = Vec::new();
                encode::lost(&mut out, attr, &lost);
                self.output.files.write_streamed(&out)
            }
            _ => Ok(()),
        }
    }
}
