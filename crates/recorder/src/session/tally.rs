//! What is counted on the way.

use prof_model::{Modules, Quality};
use prof_perfdata::Record;

use crate::backlog::ReaderCounts;
use crate::contents::Contents;
use crate::failures::Failures;
use crate::hits::Hits;

/// What is counted of one file.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) quality: Quality,
    pub(super) failures: Failures,
    pub(super) hits: Hits,
    /// Time of the first and of the last sample.
    pub(super) sample_time: Option<(u64, u64)>,
}

impl Tally {
    pub(super) fn count(&mut self, record: &Record<'_>) {
        let losses = &mut self.quality.losses;
        match record {
            Record::Lost(lost) | Record::LostSamples(lost) => losses.ring_full += lost.count,
            Record::Throttle(_) => losses.throttled += 1,
            _ => {}
        }
    }

    /// What the reader has counted since `before`.
    pub(super) fn count_reader(&mut self, counts: ReaderCounts, before: ReaderCounts) {
        let losses = &mut self.quality.losses;
        losses.backlog += counts.dropped.saturating_sub(before.dropped);
        losses.cut_stacks += counts.cut.saturating_sub(before.cut);
        losses.corrupt_rings += counts.corrupt.saturating_sub(before.corrupt);
    }

    pub(super) fn into_contents(self, modules: &Modules) -> Contents {
        let mut quality = self.quality;
        quality.failures = self.failures.most_frequent(modules);
        Contents {
            quality,
            sample_time: self.sample_time,
            build_ids: self.hits.build_ids(modules),
        }
    }
}
