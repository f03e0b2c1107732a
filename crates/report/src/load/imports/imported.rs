//! A profile as it grows from a file that holds names instead of addresses.

use prof_model::{Pid, StackEnd, Tid};

use crate::profile::{Event, Frame, FrameId, MissingData, Profile, Sample, StackId, Weight};

/// The names of functions that stand for missing frames in our outputs: see
/// [`crate::symbolize`].
const MISSING: [&str; 2] = ["[truncated: ", "[... "];

/// The module that the kernel's code is shown in.
pub(super) const KERNEL: &str = "[kernel]";

/// A profile whose samples come without times.
pub(super) struct Imported {
    profile: Profile,
    /// Of the next sample: made up, so that samples follow one another.
    time: u64,
}

/// The thread that a sample is of.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportedThread<'a> {
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    pub(super) name: &'a str,
}

impl Imported {
    pub(super) fn new(events: Vec<Event>) -> Self {
        let profile = Profile {
            events,
            missing_data: MissingData {
                times: true,
                threads: true,
                quality: true,
            },
            ..Profile::default()
        };
        Self { profile, time: 0 }
    }

    /// The profile so far.
    pub(super) fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// The stack of these frames, outermost first.
    pub(super) fn stack(&mut self, frames: impl Iterator<Item = FrameId>) -> StackId {
        let stacks = &mut self.profile.stacks;
        let stack = frames.fold(None, |prefix, frame| Some(stacks.intern(prefix, frame)));
        stack.unwrap_or_else(|| {
            let nothing = Frame::Cut(StackEnd::NotRecorded);
            let nothing = self.profile.frames.intern(nothing);
            self.profile.stacks.intern(None, nothing)
        })
    }

    /// Adds samples of `weight` together.
    pub(super) fn push(
        &mut self,
        event: usize,
        stack: StackId,
        weight: Weight,
        thread: &ImportedThread<'_>,
    ) {
        /// In ns: what made-up times differ by.
        const STEP: u64 = 1_000_000;
        let name = self.profile.names.intern(thread.name);
        self.profile.missing_data.threads &= thread.tid == 0 && thread.name.is_empty();
        self.profile.samples.push(Sample {
            time: self.time,
            pid: thread.pid,
            tid: thread.tid,
            cpu: None,
            event: u16::try_from(event).unwrap_or(u16::MAX),
            period: weight.value,
            count: weight.samples,
            name,
            stack,
            end: StackEnd::NotRecorded,
            remote_read: 0,
        });
        self.time = self.time.saturating_add(STEP);
    }

    /// Counts a sample that makes no sense.
    pub(super) fn malformed(&mut self) {
        self.profile.quality.losses.malformed += 1;
    }

    pub(super) fn finish(mut self) -> Profile {
        let counts = self.profile.samples.iter().map(|sample| sample.count);
        let samples = counts.fold(0_u64, u64::saturating_add);
        let quality = &mut self.profile.quality;
        quality.samples = samples;
        quality.stacks.insert(StackEnd::NotRecorded, samples);
        self.profile
    }
}

/// Whether a name stands for frames that are missing.
pub(super) fn is_missing(name: &str) -> bool {
    MISSING.iter().any(|start| name.starts_with(start))
}
