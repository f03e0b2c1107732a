//! Statistics of the recording.

mod module_hits;
mod unwind_failures;

use std::collections::HashMap;

use prof_model::{AmbiguousThread, InterpretedLanguage, Modules, Pid, Quality, StackEnd};
use prof_perfdata::{Record, Sample};

use crate::output::file_summary::FileSummary;
use crate::queue::batch::ReaderCounts;
use crate::stack_outcome::StackOutcome;

use module_hits::ModuleHits;
use unwind_failures::UnwindFailures;

/// The statistics of the current file, or of the chunk in memory.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    pub(super) quality: Quality,
    failures: UnwindFailures,
    pub(super) hits: ModuleHits,
    /// Time of the first and of the last sample.
    sample_time: Option<(u64, u64)>,
    /// The names of programs that have just been started, and have mapped nothing yet.
    starting: HashMap<Pid, Box<str>>,
    known_losses: KnownLosses,
}

/// Losses that are counted already, in this file or in an earlier one.
#[derive(Clone, Copy, Debug, Default)]
struct KnownLosses {
    /// The reader's counters when last read.
    reader: ReaderCounts,
    /// Lost samples that records in earlier files have reported.
    reported: u64,
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
        let StackOutcome {
            note,
            interpreted,
            stop,
        } = outcome;
        self.quality.samples += 1;
        self.quality.count_stack(note.end);
        self.quality.count_missing(note);
        self.quality.remote_read += u64::from(note.remote_read > 0);
        self.quality.without_middle += u64::from(note.is_too_deep());
        if let Some((language, added)) = interpreted {
            let quality = &mut self.quality;
            match language {
                InterpretedLanguage::Python => quality.python.count(added),
                InterpretedLanguage::Php => quality.php.count(added),
                InterpretedLanguage::Ruby => quality.ruby.count(added),
            }
        }
        if let Some(stop) = stop {
            self.failures.count(stop);
        }
    }

    /// Counts this many stacks of an ambiguous thread as stale, which were counted as whole.
    pub(super) fn count_ambiguous(&mut self, thread: AmbiguousThread, stacks: u64) {
        const MOST: usize = 1000;
        let quality = &mut self.quality;
        if quality.ambiguous_threads.len() >= MOST {
            return;
        }
        quality.ambiguous_threads.push(thread);
        let whole = quality.stacks.entry(StackEnd::Root).or_default();
        let stacks = stacks.min(*whole);
        *whole -= stacks;
        *quality.stacks.entry(StackEnd::Stale).or_default() += stacks;
        quality.remote_read = quality.remote_read.saturating_sub(stacks);
    }

    /// Counts the time of a sample.
    pub(super) fn count_time(&mut self, sample: &Sample<'_>) {
        if let Some(time) = sample.time {
            let (first, last) = self.sample_time.unwrap_or((time, time));
            self.sample_time = Some((first.min(time), last.max(time)));
        }
    }

    /// Adds what the reader has counted since the last call. Returns how many samples it has
    /// dropped since.
    pub(super) fn count_reader(&mut self, counts: ReaderCounts) -> u64 {
        let before = std::mem::replace(&mut self.known_losses.reader, counts);
        let dropped = counts.dropped.saturating_sub(before.dropped);
        let losses = &mut self.quality.losses;
        losses.queue_full += dropped;
        losses.cut_stacks += counts.cut.saturating_sub(before.cut);
        losses.corrupt_rings += counts.corrupt.saturating_sub(before.corrupt);
        dropped
    }

    /// How many of the samples that are `lost` in all no record of a complete file has reported.
    pub(super) fn unreported(&self, lost: u64) -> u64 {
        lost.saturating_sub(self.known_losses.reported)
    }

    /// The summary of what ends here; then counts the next file or chunk.
    pub(super) fn take_summary(&mut self, modules: &Modules) -> FileSummary {
        let mut known_losses = self.known_losses;
        known_losses.reported += self.quality.losses.ring_full;
        let ended = std::mem::replace(
            self,
            Self {
                known_losses,
                ..Self::default()
            },
        );
        let mut quality = ended.quality;
        quality.failures = ended.failures.most_frequent(modules);
        quality.java = modules.have_java_vm();
        FileSummary {
            quality,
            sample_time: ended.sample_time,
            build_ids: ended.hits.build_ids(modules),
        }
    }
}
