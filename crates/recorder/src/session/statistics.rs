//! Statistics of the recording.

use std::collections::HashMap;

use prof_model::{Modules, Pid, Quality};
use prof_perfdata::Record;

use crate::output::file_summary::FileSummary;
use crate::queue::record_queue::ReaderCounts;
use crate::session::module_hits::ModuleHits;
use crate::session::unwind_failures::UnwindFailures;
use crate::stack_outcome::StackOutcome;

/// The statistics of one file.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    pub(super) quality: Quality,
    pub(super) failures: UnwindFailures,
    pub(super) hits: ModuleHits,
    /// Time of the first and of the last sample.
    pub(super) sample_time: Option<(u64, u64)>,
    /// The names of programs that have just been started, and have mapped nothing yet.
    starting: HashMap<Pid, Box<str>>,
}

/// Losses that are known already.
#[derive(Debug, Default)]
pub(super) struct KnownLosses {
    /// The reader's counters when last read.
    pub(super) reader: ReaderCounts,
    /// Lost samples that records have reported.
    pub(super) reported: u64,
}

impl Statistics {
    pub(super) fn count(&mut self, record: &Record<'_>) {
        let losses = &mut self.quality.losses;
        // When a process may not be sampled any more, the name of its program is the last record
        // before its end (UnseenProcesses::protected).
        match record {
            Record::Comm(comm) if comm.exec => {
                let name = comm.name.to_string_lossy();
                self.starting.insert(comm.pid, name.into());
            }
            Record::Mmap(mmap) => drop(self.starting.remove(&mmap.pid)),
            Record::Exit(task) if task.tid == task.pid => {
                let program = self.starting.remove(&task.pid);
                let known = &mut self.quality.unseen.protected;
                *known = known.take().or(program);
            }
            Record::Lost(lost) | Record::LostSamples(lost) => losses.ring_full += lost.count,
            Record::Throttle(_) => losses.throttled += 1,
            _ => {}
        }
    }

    /// Counts a written sample, and the outcome of its stack.
    pub(super) fn count_sample(&mut self, outcome: StackOutcome) {
        let StackOutcome { note, python, stop } = outcome;
        self.quality.samples += 1;
        self.quality.count_stack(note.end);
        self.quality.remote_read += u64::from(note.remote_read > 0);
        if let Some(added) = python {
            self.quality.python.count(added);
        }
        if let Some(stop) = stop {
            self.failures.count(stop);
        }
    }

    /// Adds what the reader has counted since `before`.
    pub(super) fn count_reader(&mut self, counts: ReaderCounts, before: ReaderCounts) {
        let losses = &mut self.quality.losses;
        losses.queue_full += counts.dropped.saturating_sub(before.dropped);
        losses.cut_stacks += counts.cut.saturating_sub(before.cut);
        losses.corrupt_rings += counts.corrupt.saturating_sub(before.corrupt);
    }

    pub(super) fn into_summary(self, modules: &Modules) -> FileSummary {
        let mut quality = self.quality;
        quality.failures = self.failures.most_frequent(modules);
        quality.java = modules.have_java_vm();
        FileSummary {
            quality,
            sample_time: self.sample_time,
            build_ids: self.hits.build_ids(modules),
        }
    }
}
