//! The session: records in the order of time, followed, unwound, written.

pub(crate) mod allocation;
pub(crate) mod duplicates;
pub(crate) mod events;
pub(crate) mod interpreted;
pub(crate) mod mappings;
pub(crate) mod next_periods;
pub(crate) mod priority;
pub(crate) mod read_budget;
pub(crate) mod runtime_finder;
pub(crate) mod unwind;

mod encoder;
pub(crate) mod finish;
mod frame_limit;
mod losses;
mod moved_code;
mod output;
mod samples;
mod state;
mod statistics;
mod waits;

use std::sync::Arc;

use prof_events::system;
use prof_model::{Budget, Pid};
use prof_perfdata::{Record, WriteError};

use crate::coverage::CoverageTracker;
use crate::coverage::probes::ProbeCoverage;
use crate::live::readings::LiveReadings;
use crate::options::Storage;
use crate::output::file_summary::FileSummary;
use crate::output::output_files::OutputFiles;
use crate::output::pinned_files::FilePinner;
use crate::output::rotation::NextOutput;
use crate::queue::batch::BatchEntry;
use crate::queue::feedback::Feedback;
use crate::queue::message::Content;
use crate::queue::pending_batches::PendingBatches;
use crate::queue::record_queue::{Popped, RecordQueue};
use crate::queue::sorter::{PendingRecord, RecordSorter};
use crate::session::duplicates::Duplicates;
use crate::session::events::SessionEvents;
use crate::session::interpreted::InterpretedFrames;
use crate::session::mappings::KnownMappings;
use crate::session::priority::PriorityBoost;
use crate::session::read_budget::ReadBudget;
use crate::session::unwind::ChainBuilder;
use crate::source::hotplug::Hotplug;
use encoder::SampleEncoder;
use moved_code::MovedCode;
use output::SessionOutput;
use statistics::Statistics;
use waits::SessionWaits;

/// Sorts records, follows the processes, unwinds samples and writes it all.
pub(crate) struct Session {
    events: SessionEvents,
    output: SessionOutput,
    chain_builder: Box<ChainBuilder>,
    interpreted: InterpretedFrames,
    moved_code: MovedCode,
    /// The records of [`SyntheticCode`](prof_runtimes::SyntheticCode) and of code that has moved
    /// that are still to be written.
    found_maps: Vec<u8>,
    mappings: KnownMappings,
    trackers: Trackers,
    file_pinner: FilePinner,
    waits: SessionWaits,
    statistics: Statistics,
    own_pid: Pid,
    /// For what is kept of processes.
    budget: Budget,
    /// For looking at their files.
    reading: ReadBudget,
    /// The feedback for the reader.
    feedback: Feedback,
    /// The current sample.
    encoder: SampleEncoder,
}

/// The input of a session.
pub(crate) struct SessionInput {
    pub(crate) events: SessionEvents,
    pub(crate) output: OutputFiles,
    pub(crate) trackers: Trackers,
    pub(crate) chain_builder: ChainBuilder,
    /// For what is kept of processes.
    pub(crate) budget: Budget,
    /// For looking at their files.
    pub(crate) reading: ReadBudget,
    /// What is read of the live target.
    pub(crate) live: Arc<LiveReadings>,
}

/// The trackers that measure how far the samples represent what happened.
pub(crate) struct Trackers {
    pub(crate) duplicates: Duplicates,
    pub(crate) lifetimes: CoverageTracker,
    pub(crate) probes: ProbeCoverage,
    pub(crate) hotplug: Hotplug,
}

impl Session {
    /// If no record comes, the rings may hold records this old, in nanoseconds.
    const UNREAD: u64 = 500_000_000;

    pub(crate) fn new(input: SessionInput) -> Self {
        let SessionInput {
            events,
            output,
            trackers,
            chain_builder,
            budget,
            reading,
            live,
        } = input;
        Self {
            events,
            output: SessionOutput::new(output),
            chain_builder: Box::new(chain_builder),
            interpreted: InterpretedFrames::new(live, budget.clone(), reading.clone()),
            moved_code: MovedCode::default(),
            found_maps: Vec::new(),
            mappings: KnownMappings::default(),
            trackers,
            file_pinner: FilePinner::default(),
            waits: SessionWaits::default(),
            statistics: Statistics::default(),
            own_pid: std::process::id() as Pid,
            budget,
            reading,
            feedback: Feedback::default(),
            encoder: SampleEncoder::default(),
        }
    }

    /// Applies limits on the size of files, and rotation.
    pub(crate) fn stored(self, storage: &Storage) -> Self {
        Self {
            output: self.output.stored(storage),
            ..self
        }
    }

    /// Retains the files, whatever happens: the target runs.
    pub(crate) fn retain(&mut self) {
        self.output.files.retain();
    }

    /// Whether the recording has ended because of its size limit.
    pub(crate) fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Processes batches until the queue is closed.
    pub(crate) fn run(&mut self, queue: &RecordQueue) -> Result<(), WriteError> {
        let mut order = RecordSorter::default();
        let mut ready = Vec::new();
        let mut pending = PendingBatches::default();
        let mut last_time = 0;
        let mut priority_boost = PriorityBoost::default();
        self.begin_files()?;
        loop {
            let batch = match queue.pop(self.output.checkpoint_interval()) {
                Popped::Batch(batch) => batch,
                Popped::Nothing => {
                    self.rotate_if_due(system::monotonic_now().saturating_sub(Self::UNREAD))?;
                    self.checkpoint()?;
                    continue;
                }
                Popped::End => break,
            };
            if batch.rotates {
                self.output.rotation.request(batch.begun);
            }
            priority_boost.follow(queue);
            self.count_reader_losses(batch.counts)?;
            for (index, entry) in batch.iter().enumerate() {
                let time = match entry.content {
                    Content::Message(message) => Some(message.time),
                    _ => self.events.format.time(entry.bytes),
                };
                // A record without a time keeps its place.
                last_time = time.unwrap_or(last_time);
                order.push(PendingRecord {
                    time: last_time,
                    batch: pending.next(),
                    index,
                });
            }
            order.end_pass(batch.begun, &mut ready);
            pending.push(batch);
            self.process(&mut ready, &mut pending, queue)?;
            if self.is_full() {
                return Ok(());
            }
        }
        order.finish(&mut ready);
        self.process(&mut ready, &mut pending, queue)?;
        self.end_waits()
    }

    fn process(
        &mut self,
        ready: &mut Vec<PendingRecord>,
        pending: &mut PendingBatches,
        queue: &RecordQueue,
    ) -> Result<(), WriteError> {
        for waiting in ready.drain(..) {
            self.rotate_if_due(waiting.time)?;
            self.chain_builder.unwinds = queue.unwinds();
            if let Some(batch) = pending.get(waiting.batch)
                && let Some(entry) = batch.get(waiting.index)
            {
                self.waits.unread.now = waiting;
                self.entry(entry)?;
            }
            if self.is_full() {
                return Ok(());
            }
            pending.done_with(waiting.batch);
        }
        self.read_waits(pending)?;
        if self.feedback != Feedback::default() {
            queue.report(std::mem::take(&mut self.feedback));
        }
        while let Some(batch) = pending.pop_done() {
            queue.recycle(batch);
        }
        match self.output.in_order()? {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Samples begin here, and earlier processes are known.
    fn begin_files(&mut self) -> Result<(), WriteError> {
        let state = match self.output.files.is_in_memory() {
            true => self.state(),
            // The file contains it already.
            false => Vec::new(),
        };
        self.output.begin(state)
    }

    /// Continues in another file, if that is due before a record of this time.
    fn rotate_if_due(&mut self, time: u64) -> Result<(), WriteError> {
        let Some(next) = self.output.due(time) else {
            return Ok(());
        };
        let summary = self.take_summary();
        match next {
            NextOutput::Chunk => self.output.files.end_chunk(summary),
            NextOutput::File if self.output.files.is_streamed() => {
                self.output.files.write_requested(summary);
            }
            NextOutput::File => self.output.next_file(summary)?,
        }
        self.output.files.begin(time, self.state())
    }

    /// The summary of the current file or chunk, which ends here.
    fn take_summary(&mut self) -> FileSummary {
        let waits = self.waits.tracker.take_seen();
        self.trackers.hotplug.poll();
        let mut lacking = self.budget.take_lacking();
        lacking.extend(self.chain_builder.take_dropped_names());
        for pid in lacking {
            self.lacks_names(pid);
        }
        let quality = &mut self.statistics.quality;
        for path in self.reading.take_refused() {
            quality.left_out.add_file(&path.to_string_lossy());
        }
        quality.changed_cpus = self.trackers.hotplug.changed().to_vec();
        quality.waits = Some(waits).filter(|waits| waits.waits > 0 || waits.ready_time > 0);
        self.statistics.take_summary(&self.mappings.modules)
    }

    /// Makes the file readable up to here, in case we are killed.
    fn checkpoint(&mut self) -> Result<(), WriteError> {
        self.trackers.hotplug.poll();
        self.output.checkpoint()
    }

    /// Names of the process's functions were left out.
    fn lacks_names(&mut self, pid: Pid) {
        let process = self.mappings.processes.get(pid);
        let name = process.and_then(|process| process.name(pid, pid));
        let left_out = &mut self.statistics.quality.left_out;
        match name {
            Some(name) => left_out.add_names_of(name),
            None => left_out.add_names_of(&format!("process {pid}")),
        }
    }

    fn entry(&mut self, entry: BatchEntry<'_>) -> Result<(), WriteError> {
        let bytes = entry.bytes;
        if let Content::Message(message) = entry.content {
            self.waits.message(message, self.own_pid);
            return Ok(());
        }
        let Ok(record) = self.events.format.parse(bytes) else {
            self.statistics.quality.losses.malformed += 1;
            return Ok(());
        };
        self.statistics.count(&record);
        match &record {
            Record::Sample(sample) => return self.sample(sample, entry),
            Record::Switch(switch) => return self.switch(switch),
            Record::Exit(task) => {
                self.trackers.duplicates.forget(task.tid);
                self.chain_builder.forget_thread(task.tid);
                if let Some(unseen) = self.waits.forget(task.tid) {
                    self.unseen(unseen, task.stamp.time.unwrap_or(task.time))?;
                }
                if task.tid == task.pid {
                    self.file_pinner.forget(task.pid);
                    self.interpreted.forget(task.pid);
                    self.chain_builder.forget(task.pid);
                    self.moved_code.forget(task.pid);
                    self.reading.forget(task.pid);
                    if self.budget.forget(task.pid) {
                        self.lacks_names(task.pid);
                    }
                }
            }
            Record::Fork(task) => self.waits.tracker.start(task.tid),
            Record::Comm(comm) if comm.exec => {
                self.chain_builder.forget_thread(comm.tid);
                self.chain_builder.forget(comm.pid);
            }
            _ => {}
        }
        (self.trackers.lifetimes).follow(&record, &self.mappings.processes);
        self.mappings.follow(&record);
        self.interpreted.follow(&record, &self.mappings);
        (self.trackers.probes).follow(&record, &self.mappings.processes);
        self.output.write(bytes)
    }
}
