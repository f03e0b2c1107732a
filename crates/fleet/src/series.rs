//! The profiles of a run for other receivers: one for each event.

use prof_report::Filter;

use crate::run::Run;

/// The samples of one event.
pub(crate) struct Series {
    /// The event's index in the run.
    pub(crate) index: u8,
    /// Selects the samples.
    pub(crate) filter: Filter,
    /// When the first sample was taken, in ns since 1970.
    pub(crate) begin: i128,
    /// When the last one was.
    pub(crate) end: i128,
}

impl Run {
    /// The events with samples, except those that are derived from others.
    pub(crate) fn series(&self) -> impl Iterator<Item = Series> {
        let profile = self.profile.profile();
        let events = (0_u8..).zip(profile.events.iter().take(self.own_events));
        events.filter_map(|(index, event)| {
            let samples = profile.samples.iter();
            let mut times = samples
                .filter(|sample| sample.event == u16::from(index))
                .map(|sample| self.clock_zero + i128::from(sample.time));
            let begin = times.next()?;
            Some(Series {
                index,
                filter: Filter {
                    event: Some(event.name.clone()),
                    ..Filter::default()
                },
                begin,
                end: times.last().unwrap_or(begin),
            })
        })
    }
}
