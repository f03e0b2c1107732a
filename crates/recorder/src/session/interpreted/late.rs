//! Interpreted functions of threads that still wait when the session knows of it.
//!
//! No thread reads them at once if CPUs are sampled: that thread would itself leave its CPU, which
//! is a sample again.
//!
//! ```text
//!   sample (context switch) ───── the session has it ── read ──────── SWITCH in
//!   its stack                     no SWITCH in so far   interpreted   not before these were
//!                                                       frames        read
//! ```

use std::collections::HashMap;

use prof_events::{Weight, system};
use prof_model::Tid;
use prof_perfdata::{Record, Sample, WriteError};

use crate::offcpu::tracker::WaitSample;
use crate::queue::batch::BatchEntry;
use crate::queue::message::InterpretedReading;
use crate::queue::pending_batches::PendingBatches;
use crate::queue::sorter::PendingRecord;
use crate::session::Session;

/// Waits among the records of a pass that have not ended in it, and lack their interpreted
/// functions.
#[derive(Debug, Default)]
pub(in crate::session) struct UnreadWaits {
    /// The record that is being processed.
    pub(in crate::session) now: PendingRecord,
    /// Where the samples of the waits are.
    samples: HashMap<Tid, PendingRecord>,
}

impl UnreadWaits {
    /// The record is the sample of such a wait.
    pub(in crate::session) fn begin(&mut self, tid: Tid) {
        self.samples.insert(tid, self.now);
    }

    /// The thread has returned, or does not wait, but was preempted. Returns whether such a wait of
    /// it has begun.
    pub(in crate::session) fn end(&mut self, tid: Tid) -> bool {
        self.samples.remove(&tid).is_some()
    }
}

impl Session {
    /// Reads the interpreted functions of threads that wait, as far as is known.
    pub(in crate::session) fn read_waits(
        &mut self,
        pending: &PendingBatches,
    ) -> Result<(), WriteError> {
        for (tid, at) in std::mem::take(&mut self.waits.unread.samples) {
            let batch = pending.get(at.batch);
            let Some(entry) = batch.and_then(|batch| batch.get(at.index)) else {
                continue;
            };
            let Ok(Record::Sample(mut sample)) = self.events.format.parse(entry.bytes) else {
                continue;
            };
            let Some(reading) = self.read_blocked(&sample) else {
                continue;
            };
            let complete = system::monotonic_now();
            let entry = BatchEntry {
                interpreted: Some(&reading),
                ..entry
            };
            // Records of its functions come after those that were written.
            sample.time = Some(self.waits.unread.now.time);
            let unwound = self.unwind(&sample, sample.period, Weight::OffCpu, entry);
            self.write_maps()?;
            if let Some(outcome) = unwound {
                let of_wait = WaitSample {
                    event: sample.event,
                    record: self.encoder.record(),
                    outcome,
                };
                self.waits.tracker.replace(tid, complete, of_wait);
            }
        }
        Ok(())
    }

    /// The interpreted functions of a thread that has waited since this sample.
    pub(in crate::session) fn read_blocked(
        &mut self,
        sample: &Sample<'_>,
    ) -> Option<InterpretedReading> {
        let target = self.mappings.target(sample.pid)?;
        self.interpreted.read_blocked(&target, sample)
    }
}
