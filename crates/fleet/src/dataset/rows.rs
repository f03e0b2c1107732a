//! A run as rows of the tables.

use std::cmp::Reverse;
use std::sync::Arc;

use prof_model::{Pid, StackEnd};
use prof_report::SymbolizedProfile;
use prof_report::profile::{Frame as ProfileFrame, FrameId, NameId, StackId};
use rustc_hash::FxHashMap;

use super::number::{self, NumberedStack};
use crate::run::Run;
use crate::table::{Frame, SampleRow, StackRow};

/// Samples, sorted by time, and their stacks, sorted and each once.
pub(super) struct Rows {
    pub(super) samples: Vec<SampleRow>,
    pub(super) stacks: Vec<NumberedStack>,
}

/// What samples of one row have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    time: i64,
    event: u16,
    pid: Pid,
    name: NameId,
    stack: StackId,
    end: StackEnd,
}

/// Sums up the samples of a run by ten seconds, process, thread name, stack and event.
pub(super) fn of(run: &Run) -> Rows {
    let profile = run.profile.profile();
    let mut sums: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
    let comms = profile.process_names();
    for sample in profile.samples.iter() {
        if usize::from(sample.event) >= run.own_events {
            continue;
        }
        let key = Key {
            time: run.ten_seconds(sample.time),
            event: sample.event,
            pid: sample.pid,
            name: sample.name,
            stack: sample.stack,
            end: sample.end,
        };
        let (weight, count) = sums.entry(key).or_default();
        *weight = weight.saturating_add(sample.period);
        *count = count.saturating_add(sample.count);
    }
    let numbered = number::of_stacks(&run.profile);
    let names: Vec<Arc<str>> = profile.names.iter().map(|(_, name)| name.into()).collect();
    let events: Vec<(Arc<str>, Arc<str>)> = profile
        .events
        .iter()
        .map(|event| (event.name.as_str().into(), event.unit.name().into()))
        .collect();
    let ends = StackEnd::ALL.map(|end| (end, end_name(end)));
    let ends: FxHashMap<StackEnd, Arc<str>> = ends.into_iter().collect();
    let labels = Arc::new(run.labels.clone());
    let whole = |sum: u64| i64::try_from(sum).unwrap_or(i64::MAX);
    let mut stacks: Vec<NumberedStack> =
        sums.keys().map(|key| numbered[key.stack.index()]).collect();
    let with_hash = |(key, sums): (Key, (u64, u64))| (key, numbered[key.stack.index()].hash, sums);
    let mut sums: Vec<_> = sums.into_iter().map(with_hash).collect();
    sums.sort_unstable_by_key(|&(key, stack, _)| {
        (key.time, key.event, key.pid, key.name, stack, key.end)
    });
    let samples = sums
        .into_iter()
        .filter_map(|(key, stack, (weight, count))| {
            let (event, unit) = events.get(usize::from(key.event))?;
            Some(SampleRow {
                time: key.time,
                event: Arc::clone(event),
                unit: Arc::clone(unit),
                pid: key.pid,
                comm: Arc::clone(&names[comms.get(&key.pid)?.index()]),
                thread: Arc::clone(&names[key.name.index()]),
                stack,
                weight: whole(weight),
                count: whole(count),
                stack_end: Arc::clone(ends.get(&key.end)?),
                run: run.id,
                labels: Arc::clone(&labels),
            })
        });
    let samples = samples.collect();
    stacks.sort_unstable_by_key(|numbered| (numbered.hash, Reverse(numbered.named)));
    stacks.dedup_by_key(|numbered| numbered.hash);
    Rows { samples, stacks }
}

/// The reason in a word, as recordings have it.
pub(crate) fn end_name(end: StackEnd) -> Arc<str> {
    let name = serde_json::to_value(end).unwrap_or_default();
    name.as_str().unwrap_or_default().into()
}

/// The rows of some stacks.
pub(super) fn of_stacks(profile: &SymbolizedProfile, stacks: &[NumberedStack]) -> Vec<StackRow> {
    let mut frames = Frames::default();
    let row = |numbered: &NumberedStack| {
        let path = std::iter::successors(Some(numbered.id), |&id| profile.prefix(id));
        let path = path.map(|id| profile.profile().stacks.frame(id));
        let path: Vec<FrameId> = path.collect();
        let mut row = StackRow {
            stack: numbered.hash,
            named: numbered.named,
            frames: Vec::new(),
        };
        for frame in path.into_iter().rev() {
            row.frames.extend_from_slice(frames.of(profile, frame));
        }
        row
    };
    stacks.iter().map(row).collect()
}

/// The rows' frames of each frame of a profile, the outermost function first.
#[derive(Default)]
struct Frames {
    known: FxHashMap<FrameId, Vec<Arc<Frame>>>,
    texts: FxHashMap<String, Arc<str>>,
}

impl Frames {
    fn of(&mut self, profile: &SymbolizedProfile, id: FrameId) -> &[Arc<Frame>] {
        let Self { known, texts } = self;
        known.entry(id).or_insert_with(|| {
            let (build_id, address) = place(profile, id);
            let build_id = build_id.map(|id| {
                let shared = texts.entry(id).or_insert_with_key(|id| id.as_str().into());
                Arc::clone(shared)
            });
            let locations = profile.locations(id).iter().rev();
            let frames = locations.map(|location| {
                let function = &profile[location.function];
                Arc::new(Frame {
                    function: Arc::clone(&function.name),
                    module: Arc::clone(&function.module),
                    kind: function.kind.name().into(),
                    inlined: location.inlined,
                    build_id: build_id.clone(),
                    address,
                    file: location.file.clone(),
                    line: location.line.and_then(|line| i32::try_from(line).ok()),
                })
            });
            frames.collect()
        })
    }
}

/// The build id and the offset of a frame's code, where these are the same on all machines.
fn place(profile: &SymbolizedProfile, id: FrameId) -> (Option<String>, Option<i64>) {
    let profile = profile.profile();
    match profile.frames[id] {
        ProfileFrame::Module { module, offset } => {
            let build_id = &profile.modules[module].build_id;
            let build_id = build_id.map(|id| id.to_string());
            (build_id, Some(offset.0.cast_signed()))
        }
        ProfileFrame::Kernel(address) => {
            let kernel = &profile.kernel;
            let offset = kernel
                .text
                .map(|text| address.wrapping_sub(text).cast_signed());
            (kernel.build_id.map(|id| id.to_string()), offset)
        }
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use prof_report::Profile;
    use prof_symbols::{SymbolOptions, Symbolizer};

    use super::*;

    #[test]
    fn code_outside_of_all_files_is_one_function() {
        let mut profile = Profile::default();
        for address in [0x1000, 0x2000] {
            let frame = profile.frames.intern(ProfileFrame::Unknown(address));
            profile.stacks.intern(None, frame);
        }
        let symbolizer = Symbolizer::new(SymbolOptions::default());
        let profile = SymbolizedProfile::new(profile, &symbolizer);
        let rows = of_stacks(&profile, &number::of_stacks(&profile));
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0], rows[1]);
        assert_eq!(&*rows[0].frames[0].function, "[unknown]");
    }
}
