//! Activity over time: how much of an event each thread, process or CPU had, moment by moment.

use std::cmp::Reverse;

use crate::calltree::Split;
use crate::calltree::groups::Groups;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Event, Sample, Unit, Weight};
use crate::symbolize::SymbolizedProfile;

/// Weights by part and moment.
#[derive(Clone, Debug)]
pub struct Timeline<'p> {
    /// The profile that it is of.
    symbolized: &'p SymbolizedProfile,
    /// The event whose samples these are.
    pub event: &'p Event,
    /// The weight of everything.
    pub total: Weight,
    /// The start of the first moment, in nanoseconds since the recording's first sample; 0 if it is
    /// before that, as the period of the first sample is.
    pub start: u64,
    /// How long a moment is, in nanoseconds; at least 1.
    pub step: u64,
    /// A row for each part, the heaviest first.
    pub rows: Vec<Row>,
}

/// A part of the split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name (`worker 123/456`).
    pub name: String,
    /// All of it.
    pub total: Weight,
    /// The weight in each moment, in the event's unit. The values sum up to the total.
    pub values: Vec<u64>,
}

impl<'p> Timeline<'p> {
    /// Spreads the samples that pass `filter` over this many moments.
    ///
    /// # Errors
    /// [`Error::NoSamples`], [`Error::NoSuchEvent`]; [`Error::Lacking`] if the profile holds no
    /// times.
    pub fn new(
        symbolized: &'p SymbolizedProfile,
        filter: &Filter,
        split: Split,
        moments: usize,
    ) -> Result<Self, Error> {
        let profile = symbolized.profile();
        profile.missing_data.check_times("--timeline")?;
        let shown = FilteredSamples::new(symbolized, filter)?;
        let zero = profile.samples.iter().next().map_or(0, |first| first.time);
        let moments = moments.max(1);
        let spread = Spread::new(&shown, moments);
        let mut parts = Groups::new(profile, filter, split);
        let mut rows: Vec<(Weight, Vec<u64>)> = Vec::new();
        let mut total = Weight::default();
        for sample in shown.samples() {
            let number = parts.number(sample) as usize;
            if number == rows.len() {
                rows.push((Weight::default(), vec![0; moments]));
            }
            let (weight, values) = &mut rows[number];
            *weight += Weight::of(sample);
            total += Weight::of(sample);
            spread.add(sample, values);
        }
        let names = parts.into_names();
        let row = |(name, (total, values))| Row {
            name,
            total,
            values,
        };
        let mut rows: Vec<Row> = names.into_iter().zip(rows).map(row).collect();
        rows.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
        Ok(Self {
            symbolized,
            event: shown.event(),
            total,
            start: spread.first.saturating_sub(zero),
            step: spread.step,
            rows,
        })
    }

    /// The profile that it is of.
    pub fn symbolized(&self) -> &'p SymbolizedProfile {
        self.symbolized
    }

    /// How much a moment holds at most: a full one. For time that is at least its length, so that
    /// a thread that runs all the time fills it.
    pub fn full(&self) -> u64 {
        let values = self.rows.iter().flat_map(|row| &row.values);
        let most = values.copied().max().unwrap_or(0);
        match self.event.unit {
            Unit::Nanoseconds => most.max(self.step),
            Unit::Count(_) | Unit::Unstated => most,
        }
    }
}

/// How samples are spread over moments.
struct Spread {
    first: u64,
    step: u64,
    moments: usize,
    /// Whether a sample's period is time, which came to pass before the sample.
    is_time: bool,
}

impl Spread {
    fn new(shown: &FilteredSamples<'_>, moments: usize) -> Self {
        let is_time = shown.event().unit == Unit::Nanoseconds;
        let begin = |sample: &Sample| {
            let before = if is_time { sample.period } else { 0 };
            sample.time.saturating_sub(before)
        };
        let first = shown.samples().iter().map(begin).min().unwrap_or(0);
        let end = shown.samples().last().map_or(0, |last| last.time);
        Self {
            first,
            step: end.saturating_sub(first) / moments as u64 + 1,
            moments,
            is_time,
        }
    }

    fn add(&self, sample: &Sample, values: &mut [u64]) {
        let end = sample.time.saturating_sub(self.first);
        let last = self.moment(end);
        let mut left = sample.period;
        if self.is_time {
            // From the last moment backwards; the rest goes to the first.
            for moment in (1..=last).rev() {
                let begin = moment as u64 * self.step;
                let here = left.min(end.saturating_sub(begin).min(self.step));
                values[moment] = values[moment].saturating_add(here);
                left -= here;
                if left == 0 {
                    return;
                }
            }
            values[0] = values[0].saturating_add(left);
        } else {
            values[last] = values[last].saturating_add(left);
        }
    }

    fn moment(&self, time: u64) -> usize {
        let moment = usize::try_from(time / self.step).unwrap_or(usize::MAX);
        moment.min(self.moments - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestProfile, everything};

    /// Samples of [`TestProfile`] are a millisecond apart.
    fn check(lines: &[&str], split: Split, moments: usize, expected: &[(&str, &[u64])]) {
        let symbolized = TestProfile::of(lines);
        let timeline = Timeline::new(&symbolized, &everything(), split, moments).unwrap();
        let rows: Vec<_> = timeline
            .rows
            .iter()
            .map(|row| {
                let sum: u64 = row.values.iter().sum();
                assert_eq!(sum, row.total.value, "{row:?}");
                let values = row.values.iter().map(|v| (v + 5_000) / 1_000_000);
                (row.name.clone(), values.collect::<Vec<_>>())
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, values)| ((*name).to_owned(), values.to_vec()))
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn time_passes_before_its_sample() {
        let lines = ["a m 1", "a m 1", "a m 1", "a m 1", "a m 4"];
        check(&lines, Split::Name, 4, &[("a", &[3, 2, 2, 1])]);
        check(&lines, Split::Name, 1, &[("a", &[8])]);
    }

    #[test]
    fn the_heaviest_part_comes_first() {
        let lines = ["a m 1", "b m 1", "b m 1"];
        let rows: &[(&str, &[u64])] = &[("b", &[1, 1]), ("a", &[1, 0])];
        check(&lines, Split::Name, 2, rows);
    }
}
