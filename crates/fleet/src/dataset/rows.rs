//! A run as rows of the tables.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use prof_model::{BuildId, Pid, StackEnd};
use prof_report::SymbolizedProfile;
use prof_report::profile::{
    Frame as ProfileFrame, FrameId, FunctionKind, Sample, StackId, ThreadNameId,
};
use rustc_hash::FxHashMap;

use super::number::NumberedStack;
use crate::run::Run;
use crate::table::{Frame, SampleRow, StackRow};

/// The samples of ten seconds that have the same process, thread name, stack and event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: i64,
    event: u16,
    pid: Pid,
    name: ThreadNameId,
    stack: StackId,
    end: StackEnd,
}

/// Their weights and counts, added up.
pub(super) struct Sum {
    key: Key,
    weight: u64,
    count: u64,
}

impl Sum {
    /// When the ten seconds begin, in µs since 1970.
    pub(super) fn time(&self) -> i64 {
        self.key.time
    }
}

/// The sums of a run, sorted by time.
pub(super) fn sums(run: &Run) -> Vec<Sum> {
    let samples = run.profile.profile().samples.iter();
    let own = samples.filter(|sample| usize::from(sample.event) < run.own_events);
    let sum = |sample: Sample| Sum {
        key: Key {
            time: run.ten_seconds(sample.time),
            event: sample.event,
            pid: sample.pid,
            name: sample.name,
            stack: sample.stack,
            end: sample.end,
        },
        weight: sample.period,
        count: sample.count,
    };
    let mut sums: Vec<Sum> = own.map(sum).collect();
    sums.sort_unstable_by_key(|sum| sum.key);
    sums.dedup_by(|next, sum| {
        let is_same = next.key == sum.key;
        if is_same {
            sum.weight = sum.weight.saturating_add(next.weight);
            sum.count = sum.count.saturating_add(next.count);
        }
        is_same
    });
    sums
}

/// Those stacks of sums that are new, sorted by their numbers, each once.
pub(super) fn stacks(
    sums: &[Sum],
    numbered: &[NumberedStack],
    is_new: impl Fn(&NumberedStack) -> bool,
) -> Vec<NumberedStack> {
    let mut is_used = vec![false; numbered.len()];
    for sum in sums {
        is_used[sum.key.stack.index()] = true;
    }
    let used = numbered.iter().zip(is_used).filter(|(_, is_used)| *is_used);
    let used = used.map(|(stack, _)| *stack);
    let mut stacks: Vec<_> = used.filter(is_new).collect();
    stacks.sort_unstable_by_key(|numbered| (numbered.hash, Reverse(numbered.named)));
    stacks.dedup_by_key(|numbered| numbered.hash);
    stacks
}

/// The rows of a run's sums, whose stacks have these numbers.
pub(super) fn of_samples<'a>(
    run: &'a Run,
    sums: &[Sum],
    numbered: &[NumberedStack],
) -> Vec<SampleRow<&'a str>> {
    let profile = run.profile.profile();
    let comms = profile.process_names();
    let labels = Arc::new(run.labels.clone());
    let whole = |sum: u64| i64::try_from(sum).unwrap_or(i64::MAX);
    let row = |&Sum { key, weight, count }: &Sum| {
        let event = profile.events.get(usize::from(key.event))?;
        Some(SampleRow {
            time: key.time,
            event: &*event.name,
            unit: event.unit.name(),
            pid: key.pid,
            comm: &profile.names[*comms.get(&key.pid)?],
            thread: &profile.names[key.name],
            stack: numbered[key.stack.index()].hash,
            weight: whole(weight),
            count: whole(count),
            stack_end: end_name(key.end),
            run: run.id,
            labels: Arc::clone(&labels),
        })
    };
    sums.iter().filter_map(row).collect()
}

/// The reason in a word, as recordings have it.
pub(crate) fn end_name(end: StackEnd) -> &'static str {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let name = |end| serde_json::to_value(end).unwrap_or_default();
        let names = StackEnd::ALL.iter().map(name);
        names
            .map(|name| name.as_str().unwrap_or_default().to_owned())
            .collect()
    });
    // They are in the order of their codes.
    &NAMES[usize::from(end.code())]
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
            frames: Vec::with_capacity(path.len()),
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
    build_ids: FxHashMap<BuildId, Arc<str>>,
    kinds: FxHashMap<FunctionKind, Arc<str>>,
}

impl Frames {
    fn of(&mut self, profile: &SymbolizedProfile, id: FrameId) -> &[Arc<Frame>] {
        self.known.entry(id).or_insert_with(|| {
            let (build_id, address) = place(profile, id);
            let build_id = build_id.map(|id| {
                let shared = self.build_ids.entry(id);
                Arc::clone(shared.or_insert_with(|| id.to_string().into()))
            });
            let locations = profile.locations(id).iter().rev();
            let frames = locations.map(|location| {
                let function = &profile[location.function];
                let kind = self.kinds.entry(function.kind);
                Arc::new(Frame {
                    function: Arc::clone(&function.name),
                    module: Arc::clone(&function.module),
                    kind: Arc::clone(kind.or_insert_with(|| function.kind.name().into())),
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
fn place(profile: &SymbolizedProfile, id: FrameId) -> (Option<BuildId>, Option<i64>) {
    let profile = profile.profile();
    match profile.frames[id] {
        ProfileFrame::Module { module, offset } => {
            let build_id = profile.modules[module].build_id;
            (build_id, Some(offset.0.cast_signed()))
        }
        ProfileFrame::Kernel(address) => {
            let kernel = &profile.kernel;
            let offset = kernel
                .text
                .map(|text| address.wrapping_sub(text).cast_signed());
            (kernel.build_id, offset)
        }
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use prof_report::Profile;
    use prof_symbols::{SymbolOptions, Symbolizer};

    use super::super::number;
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

    #[test]
    fn unnamed_kernel_code_is_the_same_at_any_start_of_the_kernel() {
        let of_boot = |text: u64| {
            let mut profile = Profile::default();
            profile.kernel.text = Some(text);
            let frame = ProfileFrame::Kernel(text + 0x1234);
            let frame = profile.frames.intern(frame);
            profile.stacks.intern(None, frame);
            let profile = SymbolizedProfile::without_names(profile);
            of_stacks(&profile, &number::of_stacks(&profile))
        };
        let rows = of_boot(0xffff_ffff_8100_0000);
        assert_eq!(&*rows[0].frames[0].function, "[kernel]+0x1234");
        assert_eq!(rows, of_boot(0xffff_ffff_a240_0000));
    }
}
