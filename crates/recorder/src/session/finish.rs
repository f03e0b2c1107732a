//! The end of a session: the last file, and the quality of all.

use prof_model::{Quality, UnseenProcesses};
use prof_perfdata::WriteError;

use crate::output::output_files::Written;
use crate::output::pinned_files::PinnedFiles;
use crate::reader::Outcome;
use crate::session::Session;
use crate::session::output::SessionOutput;

/// The result when the last record is written.
pub(crate) struct Finished {
    /// The quality of all files.
    pub(crate) quality: Quality,
    pub(crate) pinned: PinnedFiles,
    pub(crate) written: Written,
    /// Whether the last file could be completed.
    pub(crate) ended: Result<(), WriteError>,
}

impl Session {
    /// Completes the last file. `outcome` is the reader's result at the end; `unseen` is what is
    /// known of processes without records.
    pub(crate) fn finish(mut self, outcome: Option<&Outcome>, unseen: UnseenProcesses) -> Finished {
        let full = self.is_full();
        let perf_maps = self.chain_builder.take_perf_maps();
        let mut last = self.take_summary();
        // No record reports losses after the last one.
        let lost = outcome.map_or(0, |outcome| outcome.lost);
        last.quality.losses.ring_full += self.statistics.unreported(lost);
        last.quality.size_limit = self.output.max_size.filter(|_| full);
        last.quality.unseen = UnseenProcesses {
            protected: last.quality.unseen.protected.take(),
            unprivileged: outcome.and_then(|it| it.unprivileged.clone()),
            never_enabled: outcome.is_some_and(|it| !it.was_enabled),
            ..unseen
        };
        let counts = outcome.map_or(&[][..], |outcome| &outcome.counts);
        let (covered_event, unsampled) = self.trackers.lifetimes.subject();
        let probes = self
            .trackers
            .probes
            .finish(outcome.map(|outcome| outcome.ended));
        let mut all = self.output.total.quality.clone();
        all.add(&last.quality);
        let coverage = match full {
            // The counts include the time up to the end, which is not all sampled up to here.
            true => Vec::new(),
            false => {
                let processes = &self.mappings.processes;
                (self.trackers.lifetimes).finish(counts, all.lost_share(), processes)
            }
        };
        let with_coverage = |quality| Quality {
            coverage: coverage.clone(),
            covered_event: covered_event.clone(),
            unsampled: unsampled.clone(),
            probes: probes.clone(),
            ..quality
        };
        if self.output.files.is_one() {
            last.quality = with_coverage(last.quality);
        }
        let ended = self.output.complete(last);
        let SessionOutput { files, total, .. } = self.output;
        let pinned = self.file_pinner.finish(&self.mappings.modules);
        Finished {
            quality: with_coverage(total.quality),
            pinned: PinnedFiles {
                perf_maps,
                ..pinned
            },
            written: files.written(),
            ended,
        }
    }
}
