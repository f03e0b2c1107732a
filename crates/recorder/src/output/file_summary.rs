//! The content of a file besides its records.

use prof_model::Quality;
use prof_perfdata::ModuleBuildId;

/// The data for a file's features.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileSummary {
    pub(crate) quality: Quality,
    /// Time of the first and of the last sample.
    pub(crate) sample_time: Option<(u64, u64)>,
    /// The build ids of sampled modules.
    pub(crate) build_ids: Vec<ModuleBuildId>,
}

impl FileSummary {
    /// Adds the summary of later records.
    pub(crate) fn add(&mut self, later: Self) {
        self.quality.add(&later.quality);
        self.sample_time = match (self.sample_time, later.sample_time) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        };
        for id in later.build_ids {
            if !self.build_ids.contains(&id) {
                self.build_ids.push(id);
            }
        }
    }
}
