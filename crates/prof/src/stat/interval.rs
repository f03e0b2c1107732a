//! Counts between two readings.

use std::time::{Duration, Instant};

use anyhow::Result;
use prof_counters::PlaceName;

use super::counters::Counters;
use super::prefix::Prefix;
use super::printer::Printer;
use super::report::{Measurement, Report};
use super::row::Counts;
use crate::flags::StatFlags;

/// Reads the counters repeatedly, at regular times.
pub(super) struct Intervals {
    period: Option<Duration>,
    deadline: Option<Instant>,
    start: Instant,
    next: Option<Instant>,
    last: Look,
    last_at: Instant,
    by_place: bool,
    names: Vec<(PlaceName, String)>,
}

/// The counts, by place if places are listed separately.
pub(super) type Look = Vec<(Option<PlaceName>, Counts)>;

impl Intervals {
    /// Starts the first interval now.
    pub(super) fn new(flags: &StatFlags, counters: &mut Counters) -> Result<Self> {
        let start = Instant::now();
        let period = flags.interval.map(Duration::from_millis);
        let mut intervals = Self {
            period,
            deadline: flags
                .duration
                .and_then(|duration| start.checked_add(duration)),
            start,
            next: period.and_then(|period| start.checked_add(period)),
            last: Vec::new(),
            last_at: start,
            by_place: flags.per_thread,
            names: Vec::new(),
        };
        intervals.last = intervals.look(counters)?;
        intervals.names = intervals
            .last
            .iter()
            .filter_map(|(place, _)| place.map(named))
            .collect();
        Ok(intervals)
    }

    /// When to read next, or to stop.
    pub(super) fn until(&self) -> Option<Instant> {
        match (self.next, self.deadline) {
            (Some(next), Some(deadline)) => Some(next.min(deadline)),
            (next, deadline) => next.or(deadline),
        }
    }

    /// Whether the requested time is over.
    pub(super) fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Prints the counts since the last reading, if an interval has ended.
    pub(super) fn tick(&mut self, counters: &mut Counters, printer: &mut Printer) -> Result<()> {
        let now = Instant::now();
        let (Some(period), Some(next)) = (self.period, self.next) else {
            return Ok(());
        };
        if now < next {
            return Ok(());
        }
        self.print(counters, printer)?;
        // Intervals that were missed, because we were stopped, are skipped.
        let missed = now.duration_since(next).as_nanos() / period.as_nanos().max(1);
        let steps = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
        self.next = next.checked_add(period.saturating_mul(steps));
        Ok(())
    }

    /// Prints the counts since the last reading, if intervals are requested; at the end, the rest.
    pub(super) fn finish(
        &mut self,
        counters: &mut Counters,
        printer: &mut Printer,
    ) -> Result<bool> {
        if self.period.is_none() {
            return Ok(false);
        }
        self.print(counters, printer)?;
        Ok(true)
    }

    fn print(&mut self, counters: &mut Counters, printer: &mut Printer) -> Result<()> {
        let now = Instant::now();
        let look = self.look(counters)?;
        for (place, counts) in &look {
            let earlier = self.last.iter().find(|(known, _)| known == place);
            let earlier = earlier.map(|(_, counts)| &counts[..]).unwrap_or_default();
            let run = Measurement {
                counts: difference(counts, earlier),
                wall: now.duration_since(self.last_at),
                usage: None,
            };
            let prefix = Prefix {
                time: Some(now.duration_since(self.start)),
                place: self.name(*place),
            };
            printer.interval(&Report::new(&counters.rows, &[run]), &prefix)?;
        }
        (self.last, self.last_at) = (look, now);
        Ok(())
    }

    /// The current counts.
    pub(super) fn look(&self, counters: &mut Counters) -> Result<Look> {
        if !self.by_place {
            return Ok(vec![(None, counters.read()?)]);
        }
        let places = counters.read_places()?;
        Ok(places
            .into_iter()
            .map(|(place, counts)| (Some(place), counts))
            .collect())
    }

    /// The name of a place when it was first seen, as it may be gone by now.
    pub(super) fn name(&self, place: Option<PlaceName>) -> Option<String> {
        let place = place?;
        let known = self.names.iter().find(|(known, _)| *known == place);
        Some(known.map_or_else(|| named(place).1, |(_, name)| name.clone()))
    }
}

fn difference(counts: &Counts, earlier: &[Option<prof_counters::Count>]) -> Counts {
    let earlier = earlier.iter().copied().chain(std::iter::repeat(None));
    let pairs = counts.iter().zip(earlier);
    pairs
        .map(|(count, earlier)| count.map(|count| count.since(earlier.unwrap_or_default())))
        .collect()
}

fn named(place: PlaceName) -> (PlaceName, String) {
    let name = match place {
        PlaceName::Cpu(cpu) => format!("CPU{cpu}"),
        PlaceName::Thread(tid) => {
            let name = prof_procfs::Task::of(tid).name();
            let name = String::from_utf8_lossy(&name);
            format!("{}-{tid}", prof_model::printable(name.trim()))
        }
    };
    (place, name)
}
