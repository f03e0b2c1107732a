//! Samples to those of a profile: their stacks interned, their weights corrected, all counted.

use std::ops::Range;

use prof_model::{CallGraphSettings, Process, StackEnd, Tid};
use prof_perfdata::{EventDescription, Features};
use rustc_hash::FxHashMap;

use super::LoadOptions;
use super::counts::Counts;
use super::events::{self, EventTraits};
use super::stacks::chain::Chain;
use super::stacks::files::RecordedFiles;
use super::stacks::intern::{Interner, Owner};
use super::stacks::interpreted::fold_interpreter;
use super::stacks::skipped_callers::SkippedCallers;
use super::weights::corrections::Corrections;
use super::weights::groups::Groups;
use super::weights::wall::Wall;
use crate::profile::{Event, Profile, Sample, ThreadNameId};

/// A profile as it grows, sample by sample.
pub(super) struct Collector {
    pub(super) profile: Profile,
    pub(super) traits: EventTraits,
    pub(super) interner: Interner,
    pub(super) counts: Counts,
    /// Keeps the interpreter's own functions among those of the program.
    pub(super) native: bool,
    /// The recorder unwound stacks, which may go on by frame pointers further out.
    unwinds: bool,
    skipped_callers: SkippedCallers,
    /// When the tails of stacks are unproven.
    ambiguous: FxHashMap<Tid, Vec<Range<u64>>>,
    groups: Groups,
    wall: Option<Wall>,
    corrections: Corrections,
    /// The current sample's events and weights; kept to save allocations.
    weights: Vec<(usize, u64)>,
}

impl Collector {
    /// For a recording with these facts about it.
    pub(super) fn new(features: &Features, options: &LoadOptions) -> Self {
        let quality = features.quality.as_ref();
        let settings = quality.and_then(|quality| quality.settings.as_ref());
        let unwinds =
            settings.is_some_and(|known| known.call_graph != CallGraphSettings::FramePointers);
        let symbols = features.symbols.as_deref().filter(|_| !unwinds);
        let mut ambiguous: FxHashMap<Tid, Vec<Range<u64>>> = FxHashMap::default();
        for thread in quality
            .iter()
            .flat_map(|quality| &quality.ambiguous_threads)
        {
            let times = ambiguous.entry(thread.tid).or_default();
            times.push(thread.from..thread.to);
        }
        Self {
            profile: Profile::default(),
            traits: EventTraits::default(),
            interner: Interner::default(),
            counts: Counts::default(),
            native: options.native,
            unwinds,
            skipped_callers: SkippedCallers::new(symbols, RecordedFiles::of(options)),
            ambiguous,
            groups: Groups::default(),
            wall: None,
            corrections: Corrections::new(quality),
            weights: Vec::new(),
        }
    }

    pub(super) fn learn_events(&mut self, events: &[EventDescription]) {
        if self.traits.update(events) {
            self.groups.update(events);
            self.wall = Wall::of(events);
            self.corrections.update(events);
        }
    }

    /// Adds a sample with these frames, whose thread had this name and process.
    pub(super) fn push(
        &mut self,
        sample: &prof_perfdata::Sample<'_>,
        chain: &mut Chain,
        process: Option<&Process>,
        name: ThreadNameId,
    ) {
        if process.is_some_and(|process| process.space().is_empty()) {
            chain.drop_stale_user_part();
        }
        if self.is_ambiguous(sample) {
            chain.drop_unproven_tail();
        }
        if let (false, Some(process)) = (self.native, process) {
            fold_interpreter(chain, process, &self.profile.modules);
        }
        let (pid, tid) = (sample.pid, sample.tid);
        if let (true, Some(process)) = (self.is_by_frame_pointers(sample, chain), process) {
            (self.skipped_callers).mark(chain, pid, process, &self.profile.modules);
        }
        let owner = Owner { pid, process };
        let (interner, profile) = (&mut self.interner, &mut self.profile);
        let stack = interner.stack(None, chain, owner, profile);
        let is_partial = chain.note.end.counts() && !chain.note.end.is_whole();
        let place = match chain.note.end {
            StackEnd::SkippedCaller => chain.user.first(),
            _ => chain.user.last(),
        };
        let place = place.filter(|_| is_partial);
        let place = place.map(|&address| interner.user_frame(pid, process, address, profile));
        self.counts.stack(chain.note, place);
        let wall = self.wall.and_then(|wall| wall.place(sample.event));
        let wall = wall.map(|(event, root)| {
            let stack = interner.stack(Some(root), chain, owner, profile);
            (event, stack)
        });
        profile.missing_data.times |= sample.time.is_none();
        self.groups.weights(sample, &mut self.weights);
        for &(event, period) in &self.weights {
            let sample = Sample {
                time: sample.time.unwrap_or(0),
                pid,
                tid,
                cpu: sample.cpu,
                event: u16::try_from(event).unwrap_or(u16::MAX),
                period: self.corrections.apply(event, owner, tid, period),
                count: 1,
                name,
                stack,
                end: chain.note.end,
                remote_read: chain.note.remote_read,
            };
            profile.samples.push(sample);
            if let Some((event, stack)) = wall {
                profile.samples.push(Sample {
                    event,
                    stack,
                    ..sample
                });
            }
        }
    }

    fn is_ambiguous(&self, sample: &prof_perfdata::Sample<'_>) -> bool {
        let times = self.ambiguous.get(&sample.tid).zip(sample.time);
        times.is_some_and(|(times, time)| times.iter().any(|range| range.contains(&time)))
    }

    /// Whether a chain comes from the kernel, which followed frame pointers.
    fn is_by_frame_pointers(&self, sample: &prof_perfdata::Sample<'_>, chain: &Chain) -> bool {
        let by_branches = self.traits.of(sample.event).open_calls && sample.branches.is_some();
        let is_unwound = self.unwinds || sample.user_stack.is_some();
        chain.note.end == StackEnd::FramePointersEnded && !is_unwound && !by_branches
    }

    /// Frames and stacks have other numbers from now on.
    pub(super) fn forget_numbers(&mut self) {
        self.interner = Interner::default();
        self.counts.forget_frames();
    }

    /// The profile's events.
    pub(super) fn describe(&self, events: &[EventDescription]) -> Vec<Event> {
        let wall = self.wall.map(|_| Wall::event());
        let mut described = events::describe(events);
        described.extend(wall);
        described
    }
}
