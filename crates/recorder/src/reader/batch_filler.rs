//! Fills a batch with the records of the rings, and reads the stack tail at once if a dump is
//! incomplete.

use std::thread;
use std::time::Duration;

use prof_events::system;
use prof_perfdata::{Record, RecordFormat, Sample, encode};

use crate::live::maps_interpreter;
use crate::live::readings::{LiveReading, LiveReadings};
use crate::live::stack_tail::TailReader;
use crate::offcpu::blocked_threads::BlockedThreadSampler;
use crate::queue::batch::{Batch, ReaderCounts};
use crate::queue::message::{SampledThread, StackCopy};
use crate::queue::pressure::{CUT_STACK, Pressure};
use crate::queue::record_queue::FreeSpace;
use crate::reader::short_threads::PeriodRandomizer;
use crate::reader::wakeup::PassSummary;

/// Fills a batch with records of the rings.
pub(super) struct BatchFiller<'a> {
    pub(super) format: &'a RecordFormat,
    pub(super) tail_reader: Option<&'a mut TailReader>,
    pub(super) live: &'a LiveReadings,
    pub(super) period_randomizer: Option<&'a mut PeriodRandomizer>,
    pub(super) blocked_threads: Option<&'a mut BlockedThreadSampler>,
    pub(super) counts: &'a mut ReaderCounts,
    pub(super) summary: PassSummary,
    /// Whether watchers read samples, and may not have come to the newest yet.
    pub(super) races_watchers: bool,
}

impl BatchFiller<'_> {
    /// How long to wait for a watcher that has not got its CPU yet, in nanoseconds: as long as
    /// others may have it.
    const TO_READ: u64 = 5_000_000;
    /// A watcher takes less to read a sample.
    const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

    /// Adds one record, given its bytes in the ring.
    pub(super) fn record(&mut self, bytes: &[u8], batch: &mut Batch, space: &FreeSpace) {
        match self.format.parse(bytes) {
            Ok(Record::Sample(sample)) => self.sample(bytes, &sample, batch, space),
            Ok(record) => {
                self.summary.changes |= changes_processes(&record);
                self.summary.interpreters |= maps_interpreter(&record);
                if let Some(period_randomizer) = &mut self.period_randomizer {
                    period_randomizer.notice(&record);
                }
                if let Some(blocked_threads) = &mut self.blocked_threads {
                    blocked_threads.notice(&record);
                }
                batch.push(|out| out.extend_from_slice(bytes));
            }
            // The session counts it.
            Err(_) => batch.push(|out| out.extend_from_slice(bytes)),
        }
    }

    /// What was read for a sample. If this thread comes before the watcher that the sample has
    /// woken, the watcher gets the time to read: it does while the sample is in the ring.
    fn reading(&mut self, sample: &Sample<'_>) -> LiveReading {
        let mut reading = self.live.take(sample);
        if !self.races_watchers
            || reading.interpreted.is_some()
            || self.live.interpreter(sample.pid).is_none()
            || SampledThread::of(sample).is_none()
        {
            return reading;
        }
        let mut has_waited = false;
        let age = |time| system::monotonic_now().saturating_sub(time);
        while reading.interpreted.is_none()
            && (sample.time).is_some_and(|time| age(time) < Self::TO_READ)
        {
            thread::sleep(Self::BETWEEN_LOOKS);
            reading = self.live.take(sample);
            has_waited = true;
        }
        // A watcher that has no CPU holds up a pass only once: blocked threads are to be read.
        self.races_watchers = !has_waited || reading.interpreted.is_some();
        reading
    }

    fn sample(&mut self, bytes: &[u8], sample: &Sample<'_>, batch: &mut Batch, space: &FreeSpace) {
        self.summary.samples += 1;
        let live = self.reading(sample);
        let pressure = space.pressure(batch);
        if pressure == Pressure::Full {
            self.counts.dropped += 1;
            return;
        }
        let weight = match &mut self.period_randomizer {
            Some(period_randomizer) => match period_randomizer.thinned_weight(sample) {
                None => return,
                kept => kept,
            },
            None => None,
        };
        let limit = match pressure {
            Pressure::Low | Pressure::Raised => usize::MAX,
            Pressure::High | Pressure::Full => CUT_STACK,
        };
        let copied = sample.user_stack.map_or(0, |stack| stack.bytes.len());
        self.counts.cut += u64::from(copied > limit);
        batch.push(|out| encode::shortened(out, bytes, sample, limit));
        if let (Some(weight), Some(attr)) = (weight, self.format.attr(sample.event)) {
            attr.set_sample_period(batch.last_mut(), weight);
        }
        if let Some(reading) = live.interpreted {
            batch.push_interpreted(reading);
        }
        // Under pressure the tail is read later, when the stack is unwound, which is too late for
        // some: those count as truncated or stale, not as cut.
        if let Some(tail_reader) = &mut self.tail_reader
            && pressure == Pressure::Low
            && let Some(copy) = StackCopy::full(sample)
        {
            let refused = tail_reader.refused();
            match live.tail {
                Some((tail, bytes)) => {
                    batch.push_tail(|out| {
                        out.extend_from_slice(&bytes);
                        Some(tail)
                    });
                    self.live.reuse(bytes);
                }
                None => read_tail(tail_reader, &copy, batch),
            }
            self.summary.full_copies |= tail_reader.refused() == refused;
        }
    }
}

/// Adds the tail of the last sample's stack.
fn read_tail(tail_reader: &mut TailReader, stack: &StackCopy, batch: &mut Batch) {
    if let Some(read) = tail_reader.read_in_pass(stack) {
        batch.share_tail(read);
    } else if let Some(read) = batch.push_tail(|bytes| tail_reader.read(stack, bytes)) {
        tail_reader.share_in_pass(stack.pid, read);
    }
}

/// Whether it reports new or ended processes or threads, or mappings.
fn changes_processes(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::Mmap(_) | Record::Comm(_) | Record::Fork(_) | Record::Exit(_)
    )
}
