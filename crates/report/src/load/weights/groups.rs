//! What a sample stands for when it comes with counter values (`PERF_SAMPLE_READ`).
//!
//! A group's leader (`perf record -e '{cycles,instructions}:S'`) is sampled for all its members:
//! its samples carry what each of them has counted so far. Each member then has a sample of what
//! it counted since the one before, and none where it did not count: as perf's own tools do it.

use prof_model::Tid;
use prof_perfdata::{AttrFlags, EventDescription, Sample, SampleType};
use rustc_hash::FxHashMap;

/// Counters by id, and what they had counted.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct Groups {
    counters: FxHashMap<u64, Counter>,
    /// By id and, where threads have counters of their own, thread.
    counted: FxHashMap<(u64, Tid), u64>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    event: usize,
    /// Inherited counters share an id, but not their values.
    per_thread: bool,
}

impl Groups {
    pub(in crate::load) fn update(&mut self, events: &[EventDescription]) {
        let read = |event: &&EventDescription| event.attr.sample_type.contains(SampleType::READ);
        if !events.iter().any(|event| read(&event)) {
            return;
        }
        for (index, event) in events.iter().enumerate() {
            let counter = Counter {
                event: index,
                per_thread: event.attr.flags.contains(AttrFlags::INHERIT),
            };
            let ids = event.ids.iter();
            self.counters.extend(ids.map(|&id| (id, counter)));
        }
    }

    /// Each event that the sample is of, with how much of it.
    pub(in crate::load) fn weights(
        &mut self,
        sample: &Sample<'_>,
        weights: &mut Vec<(usize, u64)>,
    ) {
        weights.clear();
        let Some(values) = sample.read else {
            weights.push((sample.event, sample.period.max(1)));
            return;
        };
        for value in values.iter() {
            let Some(id) = value.id.or(sample.id) else {
                continue;
            };
            let Some(counter) = self.counters.get(&id) else {
                continue;
            };
            let thread = if counter.per_thread { sample.tid } else { 0 };
            let before = self.counted.insert((id, thread), value.value).unwrap_or(0);
            let weight = value.value.wrapping_sub(before);
            if weight > 0 {
                weights.push((counter.event, weight));
            }
        }
    }
}
