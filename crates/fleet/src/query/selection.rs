//! The selection of samples.

use crate::dataset::{Partition, date_of};
use crate::run::Labels;

/// Samples of a time, a service, a machine, with labels; each is optional.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The first time, in µs since 1970.
    pub(crate) since: Option<i64>,
    /// Up to before here.
    pub(crate) until: Option<i64>,
    /// Any of these; all if there are none.
    pub(crate) services: Vec<String>,
    /// Any of these.
    pub(crate) hosts: Vec<String>,
    /// All these labels must match.
    pub(crate) labels: Labels,
}

impl Selection {
    /// Whether a partition may have some.
    pub(crate) fn has(&self, partition: &Partition) -> bool {
        let any = |wanted: &[String], name: &String| wanted.is_empty() || wanted.contains(name);
        self.has_day(partition) && any(&self.hosts, &partition.host)
    }

    /// The same for stacks, which have no machine.
    pub(crate) fn has_day(&self, partition: &Partition) -> bool {
        let date = &partition.date;
        let services = &self.services;
        self.since.is_none_or(|since| *date >= date_of(since))
            && self.until.is_none_or(|until| *date <= date_of(until - 1))
            && (services.is_empty() || services.contains(&partition.service))
    }

    /// Whether a time may be among those from `first` to `last`.
    pub(crate) fn overlaps(&self, (first, last): (i64, i64)) -> bool {
        self.since.is_none_or(|since| last >= since) && self.until.is_none_or(|until| first < until)
    }

    /// Whether this time is meant.
    pub(crate) fn has_time(&self, time: i64) -> bool {
        self.overlaps((time, time))
    }

    /// Whether samples with these labels are meant.
    pub(crate) fn has_labels(&self, labels: &Labels) -> bool {
        let mut wanted = self.labels.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    }
}
