//! Several profiles as one.

use prof_model::ModuleId;
use prof_symbols::RecordedKernel;

use super::{Event, Frame, FrameId, Profile, Sample, StackId, ThreadNameId};

impl Profile {
    /// Merges profiles, in their order, without the time between recordings.
    pub fn merged(mut profiles: Vec<Self>) -> Self {
        close_gaps(&mut profiles);
        let mut all = Self::default();
        for profile in profiles {
            all.append(profile);
        }
        all
    }

    /// Adds the samples of `other`. Events of one name and unit become one, as do frames, stacks
    /// and names; samples are in time order again.
    fn append(&mut self, other: Self) {
        if self.is_blank() {
            *self = other;
            return;
        }
        let map = Map::new(self, &other);
        for sample in other.samples.iter() {
            self.samples.push(map.sample(sample));
        }
        self.samples.sort_by_time();
        let main_names = other.main_names.iter();
        let main_names = main_names.map(|(&pid, name)| (pid, map.names[name.index()]));
        self.main_names.extend(main_names);
        self.thread_lifetimes.append(other.thread_lifetimes);
        self.quality.add(&other.quality);
        self.symbols = self.symbols.take().or(other.symbols);
        self.clock_zero = self
            .clock_zero
            .filter(|zero| other.clock_zero == Some(*zero));
        self.missing_data.times |= other.missing_data.times;
        self.missing_data.threads |= other.missing_data.threads;
        self.missing_data.quality |= other.missing_data.quality;
        match (&mut self.stack_check, other.stack_check) {
            (Some(check), Some(more)) => check.append(more),
            (check, more) => *check = check.take().or(more),
        }
        if self.header != other.header {
            // Facts in which two recordings differ are dropped.
            self.header = super::Header {
                arch: self
                    .header
                    .arch
                    .take()
                    .filter(|arch| other.header.arch.as_ref() == Some(arch)),
                ..super::Header::default()
            };
        }
    }

    fn is_blank(&self) -> bool {
        self.events.is_empty() && self.samples.is_empty()
    }

    fn event(&mut self, event: &Event) -> u16 {
        let known = self.events.iter().position(|known| known == event);
        let index = known.unwrap_or_else(|| {
            self.events.push(event.clone());
            self.events.len() - 1
        });
        u16::try_from(index).unwrap_or(u16::MAX)
    }
}

/// Removes the time between recordings: it may be hours, in which the recordings would be too small
/// to see. Those that overlap keep their times.
fn close_gaps(profiles: &mut [Profile]) {
    let mut parts: Vec<(u64, u64, &mut Profile)> = profiles
        .iter_mut()
        .filter(|profile| !profile.missing_data.times)
        .filter_map(|profile| {
            let (first, last) = profile.samples.times()?;
            Some((first, last, profile))
        })
        .collect();
    parts.sort_by_key(|(first, ..)| *first);
    let mut gaps = 0;
    let mut end = parts.first().map_or(0, |(first, ..)| *first);
    for (first, last, profile) in parts {
        gaps += first.saturating_sub(end);
        end = end.max(last);
        profile.samples.move_back(gaps);
        profile.thread_lifetimes.move_back(gaps);
    }
}

/// Maps the ids of one profile to those of another.
struct Map {
    events: Vec<u16>,
    names: Vec<ThreadNameId>,
    stacks: Vec<StackId>,
}

impl Map {
    fn new(into: &mut Profile, other: &Profile) -> Self {
        let modules = other.modules.iter();
        let modules: Vec<ModuleId> = modules
            .map(|(_, module)| into.modules.intern(module.clone()))
            .collect();
        let kernel = (into.kernel, other.kernel);
        let mut frames: Vec<FrameId> = Vec::with_capacity(other.frames.len());
        for (_, frame) in other.frames.iter() {
            let frame = match frame {
                Frame::Module { module, offset } => Frame::Module {
                    module: modules[module.index()],
                    offset,
                },
                Frame::Kernel(address) => same_kernel(kernel, address),
                Frame::Named(id) => Frame::Named(into.named.intern(other.named[id].clone())),
                frame => frame,
            };
            frames.push(into.frames.intern(frame));
        }
        let mut stacks: Vec<StackId> = Vec::with_capacity(other.stacks.len());
        for stack in other.stacks.iter() {
            // A stack comes after the one that it extends.
            let prefix = other.stacks.prefix(stack).map(|id| stacks[id.index()]);
            let frame = frames[other.stacks.frame(stack).index()];
            stacks.push(into.stacks.intern(prefix, frame));
        }
        let names = other.names.iter();
        Self {
            events: other.events.iter().map(|event| into.event(event)).collect(),
            names: names.map(|(_, name)| into.names.intern(name)).collect(),
            stacks,
        }
    }

    fn sample(&self, sample: Sample) -> Sample {
        let event = self.events.get(usize::from(sample.event));
        Sample {
            event: event.copied().unwrap_or(u16::MAX),
            name: self.names[sample.name.index()],
            stack: self.stacks[sample.stack.index()],
            ..sample
        }
    }
}

/// The shift between two boots' kernel addresses: a kernel of one build is moved as a whole from
/// boot to boot. Another build is not comparable.
fn same_kernel((into, other): (RecordedKernel, RecordedKernel), address: u64) -> Frame {
    if into == other {
        return Frame::Kernel(address);
    }
    match (into.text, other.text) {
        (Some(to), Some(from)) if into.build_id == other.build_id => {
            Frame::Kernel(address.wrapping_sub(from).wrapping_add(to))
        }
        _ => Frame::Unknown(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with samples at these times, and a thread that began with the first.
    fn profile(times: &[u64]) -> Profile {
        let mut profile = Profile::default();
        profile.events.push(Event {
            name: "cpu-clock".into(),
            unit: super::super::Unit::Nanoseconds,
        });
        let frame = profile.frames.intern(Frame::Kernel(1));
        let stack = profile.stacks.intern(None, frame);
        let name = profile.names.intern("t");
        for &time in times {
            profile.samples.push(Sample {
                time,
                pid: 1,
                tid: 1,
                cpu: None,
                event: 0,
                period: 1,
                count: 1,
                name,
                stack,
                end: prof_model::StackEnd::Root,
                remote_read: 0,
            });
        }
        let first = times.first().copied().unwrap_or(0);
        profile.thread_lifetimes.begin(1, 1, first);
        profile
    }

    #[test]
    fn time_between_recordings_is_left_out() {
        let check = |parts: &[&[u64]], expected: &[u64]| {
            let merged = Profile::merged(parts.iter().map(|times| profile(times)).collect());
            let times: Vec<u64> = merged.samples.iter().map(|sample| sample.time).collect();
            assert_eq!(times, expected, "{parts:?}");
            let thread_lifetimes = &merged.thread_lifetimes.by_thread()[&(1, 1)];
            let starts = thread_lifetimes.iter().filter_map(|life| life.start);
            starts.collect::<Vec<u64>>()
        };
        // One keeps its times; those that overlap or touch do, too.
        check(&[&[100, 110]], &[100, 110]);
        check(
            &[&[100, 110], &[105, 120], &[120]],
            &[100, 105, 110, 120, 120],
        );
        // Hours apart, in any order; overlapping ones move together.
        let thread_lifetimes = check(&[&[9100, 9110], &[100, 110]], &[100, 110, 110, 120]);
        assert_eq!(thread_lifetimes, [110, 100]);
        check(
            &[&[10, 20], &[1005, 1030], &[1000, 1010], &[5000]],
            &[10, 20, 20, 25, 30, 50, 50],
        );
        check(&[&[], &[5], &[7]], &[5, 5]);
    }
}
