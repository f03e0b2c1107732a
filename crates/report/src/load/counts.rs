//! The quality of a recording, counted while it is loaded.

use std::cmp::Reverse;

use prof_model::{
    CallGraphSettings, Quality, RecordingSettings, SampledBy, StackEnd, StackNote, UnwindFailure,
};
use prof_perfdata::{Attr, Lost, Recording, SampleType};
use rustc_hash::FxHashMap;

use super::events::Traits;
use super::losses::ReportedLosses;
use crate::profile::{Frame, FrameId, Frames, Profile};

/// Counts of what was met.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    quality: Quality,
    losses: ReportedLosses,
    failures: FxHashMap<(StackEnd, FrameId), u64>,
    unwound: bool,
}

impl Counts {
    /// Records that found a ring full.
    pub(super) fn lost(&mut self, lost: &Lost) {
        self.losses.add_records(lost);
    }

    /// Samples that an event with these traits lost.
    pub(super) fn lost_samples(&mut self, lost: &Lost, traits: Traits) {
        self.losses.add_samples(lost, traits);
    }

    pub(super) fn throttled(&mut self) {
        self.quality.losses.throttled += 1;
    }

    /// Stacks were unwound just now, so what was noted when they were recorded does not count.
    pub(super) fn unwound(&mut self) {
        self.unwound = true;
    }

    /// Whether there were copies of stacks.
    pub(super) fn has_unwound(&self) -> bool {
        self.unwound
    }

    /// A sample, how its user stack ended, and the outermost frame of one that is not whole.
    pub(super) fn stack(&mut self, note: StackNote, outermost: Option<FrameId>) {
        self.quality.samples += 1;
        self.quality.count_stack(note.end);
        self.quality.count_missing(note);
        self.quality.remote_read += u64::from(note.remote_read > 0);
        self.quality.without_middle += u64::from(note.is_too_deep());
        if let Some(frame) = outermost {
            *self.failures.entry((note.end, frame)).or_default() += 1;
        }
    }

    /// Forgets where stacks ended: frames have other numbers from now on.
    pub(super) fn forget_frames(&mut self) {
        self.failures.clear();
    }

    /// All in all: what was counted here, and what the recorder counted if it did.
    pub(super) fn finish(mut self, profile: &Profile, recording: &Recording) -> Quality {
        self.quality.failures = self.failures(profile);
        self.quality.losses.ring_full = self.losses.sum();
        self.quality.java = profile.modules.have_java_vm();
        let mut quality = match &recording.features().quality {
            Some(recorded) if !self.unwound => {
                let mut quality = recorded.clone();
                quality.take_skipped_callers(&self.quality);
                quality
            }
            Some(recorded) => {
                self.quality.losses = recorded.losses;
                self.quality.probes.clone_from(&recorded.probes);
                self.quality.set_settings(recorded);
                self.quality
            }
            None => Quality {
                sampled_by: sampled_by(recording),
                every_event: is_every_event(recording),
                settings: Some(settings(recording)),
                ..self.quality
            },
        };
        let malformed = &mut quality.losses.malformed;
        *malformed = malformed.saturating_add(recording.malformed());
        quality.losses.truncated_file |= recording.truncated();
        quality.losses.too_large_file |= recording.is_too_large();
        quality.losses.unread_recording |= recording.is_followed();
        quality
    }

    fn failures(&self, profile: &Profile) -> Vec<UnwindFailure> {
        let mut failures: Vec<_> = self
            .failures
            .iter()
            .map(|(&(end, frame), &count)| failure(end, profile, frame, count))
            .collect();
        failures.sort_by(|a, b| {
            let key = |f: &UnwindFailure| (Reverse(f.count), f.end, f.offset);
            key(a).cmp(&key(b)).then_with(|| a.module.cmp(&b.module))
        });
        failures.truncate(Quality::MAX_FAILURES);
        failures
    }
}

/// Of recordings of other tools.
fn sampled_by(recording: &Recording) -> SampledBy {
    let events = recording.events();
    let by_period = events.iter().all(|event| event.attr.frequency().is_none());
    match by_period && !events.is_empty() {
        true => SampledBy::Period,
        false => SampledBy::Rate,
    }
}

/// The settings in the events' attributes.
fn settings(recording: &Recording) -> RecordingSettings {
    let attrs = || recording.events().iter().map(|event| &event.attr);
    let call_graph = attrs().next().map_or(CallGraphSettings::None, |attr| {
        let has = |field| attr.sample_type.contains(field);
        if has(SampleType::STACK_USER) {
            CallGraphSettings::Dump(attr.sample_stack_user)
        } else if has(SampleType::BRANCH_STACK) {
            CallGraphSettings::LastBranches
        } else if has(SampleType::CALLCHAIN) {
            CallGraphSettings::FramePointers
        } else {
            CallGraphSettings::None
        }
    });
    const SOFTWARE: u32 = 1;
    let is_clock = |attr: &Attr| attr.kind == SOFTWARE && attr.config <= 1;
    RecordingSettings {
        call_graph,
        unwound: !matches!(call_graph, CallGraphSettings::Dump(_)),
        by_clock: attrs().all(is_clock),
        with_clock: attrs().any(is_clock),
        rate: attrs().find_map(Attr::frequency),
        // The user who recorded is unknown: no advice about permissions.
        root: true,
        may_raise_priority: true,
        by_other_tool: true,
        ..RecordingSettings::default()
    }
}

fn is_every_event(recording: &Recording) -> bool {
    let mut attrs = recording.events().iter().map(|event| &event.attr);
    attrs.all(|attr| attr.frequency().is_none() && attr.period_or_frequency == 1)
        && !recording.events().is_empty()
}

fn failure(end: StackEnd, profile: &Profile, frame: FrameId, count: u64) -> UnwindFailure {
    let (module, offset) = place(profile, frame);
    UnwindFailure {
        end,
        module,
        offset,
        count,
    }
}

/// The path of a frame's module and the offset in its file; no path and the address if it has none.
pub(super) fn place(profile: &Profile, frame: FrameId) -> (String, u64) {
    let frames: &Frames = &profile.frames;
    match frames[frame] {
        Frame::Module { module, offset } => {
            let path = profile.modules[module].path.to_string_lossy();
            (path.into_owned(), offset.0)
        }
        Frame::Jit { address, .. } | Frame::Unknown(address) | Frame::Kernel(address) => {
            (String::new(), address)
        }
        Frame::Named(_) | Frame::Cut(_) | Frame::LeftOut(_) | Frame::OnCpu | Frame::OffCpu => {
            (String::new(), 0)
        }
    }
}
