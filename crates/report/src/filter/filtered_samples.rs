//! The samples and frames that pass a filter, for formats that store single samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::error::{Error, NoSamples};
use crate::filter::Filter;
use crate::filter::selection::{Seen, Selection};
use crate::profile::{Event, FrameId, Sample, StackId, Weight};
use crate::symbolize::{Location, SymbolizedProfile};

/// The part of a profile that passes a [`Filter`]: samples in time order, and the locations of each
/// frame. The same samples and frames as in the [`CallTree`](crate::CallTree) of that filter.
pub(crate) struct FilteredSamples<'p> {
    symbolized: &'p SymbolizedProfile,
    event: u16,
    samples: Vec<Sample>,
    /// By frame id: its shown locations, as a range of `locations`.
    ends: Vec<u32>,
    locations: Vec<&'p Location>,
}

impl<'p> FilteredSamples<'p> {
    /// Applies `filter`.
    ///
    /// # Errors
    /// [`Error::NoSamples`] if nothing is left, [`Error::NoSuchEvent`].
    pub(crate) fn new(symbolized: &'p SymbolizedProfile, filter: &Filter) -> Result<Self, Error> {
        check_samples(symbolized)?;
        Self::select(symbolized, &Selection::new(symbolized, filter)?)
    }

    /// Applies `filter`; samples of all events, unless it names one.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_all_events(
        symbolized: &'p SymbolizedProfile,
        filter: &Filter,
    ) -> Result<Self, Error> {
        check_samples(symbolized)?;
        Self::select(symbolized, &Selection::of_all_events(symbolized, filter)?)
    }

    fn select(symbolized: &'p SymbolizedProfile, selection: &Selection<'_>) -> Result<Self, Error> {
        let profile = symbolized.profile();
        let mut shown = Self {
            symbolized,
            event: selection.event(),
            samples: Vec::new(),
            ends: Vec::with_capacity(profile.frames.len()),
            locations: Vec::new(),
        };
        for (frame, _) in profile.frames.iter() {
            let locations = symbolized.locations(frame).iter();
            shown
                .locations
                .extend(locations.filter(|location| selection.shows(location)));
            shown.ends.push(shown.locations.len() as u32);
        }
        let shown_stacks = shown.shown_stacks(selection);
        let is_shown =
            |sample: &Sample| shown_stacks[sample.stack.index()] && selection.has(sample);
        shown.samples = profile.samples.iter().filter(is_shown).collect();
        if shown.samples.is_empty() {
            return Err(Error::NoSamples(NoSamples::Left));
        }
        Ok(shown)
    }

    /// The profile.
    pub(crate) fn symbolized(&self) -> &'p SymbolizedProfile {
        self.symbolized
    }

    /// The event whose samples these are.
    pub(crate) fn event(&self) -> &'p Event {
        &self.symbolized.profile().events[usize::from(self.event)]
    }

    /// The samples in time order. At least one.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The distinct stacks of the samples and their weights, by id.
    pub(crate) fn weighted_stacks(&self) -> BTreeMap<StackId, Weight> {
        let mut stacks: FxHashMap<StackId, Weight> = FxHashMap::default();
        for sample in &self.samples {
            *stacks.entry(sample.stack).or_default() += Weight::of(sample);
        }
        stacks.into_iter().collect()
    }

    /// Time from the first sample to the last, in nanoseconds.
    pub(crate) fn duration(&self) -> u64 {
        let time = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.time);
        time(self.samples.last()).saturating_sub(time(self.samples.first()))
    }

    /// The time of the first sample, in nanoseconds since 1970, if known.
    pub(crate) fn time_of_day(&self) -> Option<i64> {
        let zero = self.symbolized.profile().clock_zero?;
        let first = i64::try_from(self.samples.first()?.time).ok()?;
        zero.checked_add(first)
    }

    /// The period that most samples have; the shorter one of two.
    pub(crate) fn usual_period(&self) -> u64 {
        let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
        for sample in &self.samples {
            *counts.entry(sample.period).or_default() += 1;
        }
        let usual = counts
            .into_iter()
            .max_by_key(|&(period, count)| (count, Reverse(period)));
        usual.map_or(0, |(period, _)| period)
    }

    /// The visible locations of a frame, innermost first; may be empty.
    pub(crate) fn locations(&self, frame: FrameId) -> &[&'p Location] {
        let end = |index: usize| self.ends[index] as usize;
        let start = frame.index().checked_sub(1).map_or(0, end);
        &self.locations[start..end(frame.index())]
    }

    /// The visible locations of the frames on the samples' stacks, each frame once.
    pub(crate) fn all_locations(&self) -> impl Iterator<Item = &'p Location> {
        let profile = self.symbolized.profile();
        let mut stacks_seen = vec![false; profile.stacks.len()];
        let mut frames_seen = vec![false; profile.frames.len()];
        for sample in &self.samples {
            for stack in self.stacks(sample.stack) {
                // The stack that it extends was seen with it.
                if std::mem::replace(&mut stacks_seen[stack.index()], true) {
                    break;
                }
                frames_seen[profile.stacks.frame(stack).index()] = true;
            }
        }
        let frames = profile.frames.iter().map(|(id, _)| id);
        let seen = frames.filter(move |id| frames_seen[id.index()]);
        seen.flat_map(|id| self.locations(id).iter().copied())
    }

    /// By function id: its file, if known. Formats that assign files to functions, not to
    /// locations, use this.
    pub(crate) fn files(&self) -> Vec<Option<&'p str>> {
        let mut files = vec![None; self.symbolized.functions().len()];
        for location in &self.locations {
            let file = &mut files[location.function.index()];
            *file = file.or(location.file.as_deref());
        }
        files
    }

    /// The frames of a stack of which anything is shown, innermost first.
    pub(crate) fn frames(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        self.stacks(stack)
            .map(|stack| self.symbolized.profile().stacks.frame(stack))
            .filter(|&frame| !self.locations(frame).is_empty())
    }

    /// A stack and those that it extends, innermost first.
    fn stacks(&self, stack: StackId) -> impl Iterator<Item = StackId> {
        std::iter::successors(Some(stack), |&stack| self.symbolized.prefix(stack))
    }

    /// By stack id: whether its samples are shown.
    fn shown_stacks(&self, selection: &Selection<'_>) -> Vec<bool> {
        let profile = self.symbolized.profile();
        let mut found: Vec<(Seen, bool)> = Vec::with_capacity(profile.stacks.len());
        // A stack comes after the one that it extends.
        for stack in profile.stacks.iter() {
            let prefix = self.symbolized.prefix(stack);
            let (mut seen, mut any) = prefix.map_or_else(Default::default, |id| found[id.index()]);
            let frame = profile.stacks.frame(stack);
            for location in self.symbolized.locations(frame).iter().rev() {
                seen = selection.see(seen, location.function);
            }
            any |= !self.locations(frame).is_empty();
            found.push((seen, any));
        }
        let is_shown = |&(seen, any): &(Seen, bool)| any && selection.accepts(seen);
        found.iter().map(is_shown).collect()
    }
}

/// Checks that the recording has samples.
pub(crate) fn check_samples(symbolized: &SymbolizedProfile) -> Result<(), Error> {
    let profile = symbolized.profile();
    match profile.samples.is_empty() {
        true => Err(Error::NoSamples(NoSamples::recorded(&profile.quality))),
        false => Ok(()),
    }
}
