//! What the events of a recording say about its samples.

use prof_perfdata::{EventDescription, ReadFormat, SampleType};
use rustc_hash::FxHashMap;

use crate::profile::{Event, Unit};

/// How the samples of an event store their stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    /// They have call chains.
    pub(super) chains: bool,
    /// Their last branches are the calls that have not returned (`--call-graph lbr`).
    pub(super) open_calls: bool,
    /// The kernel counts the samples that it loses.
    pub(super) counts_losses: bool,
    /// It has no samples: it is there for the sake of other records.
    pub(super) is_dummy: bool,
}

/// The traits of all events.
#[derive(Clone, Debug, Default)]
pub(super) struct EventTraits(Vec<Traits>);

/// `PERF_SAMPLE_BRANCH_CALL_STACK`
const CALL_STACK: u64 = 1 << 11;

/// `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_DUMMY`
const DUMMY: (u32, u64) = (1, 9);

impl EventTraits {
    /// Learns what is new; returns whether anything is.
    pub(super) fn update(&mut self, events: &[EventDescription]) -> bool {
        if events.len() == self.0.len() {
            return false;
        }
        let traits = |event: &EventDescription| Traits {
            chains: event.attr.sample_type.contains(SampleType::CALLCHAIN),
            open_calls: event.attr.branch_sample_type & CALL_STACK != 0,
            counts_losses: event.attr.read_format.contains(ReadFormat::LOST),
            is_dummy: (event.attr.kind, event.attr.config) == DUMMY,
        };
        self.0 = events.iter().map(traits).collect();
        true
    }

    pub(super) fn of(&self, event: usize) -> Traits {
        self.0.get(event).copied().unwrap_or(Traits {
            chains: true,
            open_calls: false,
            counts_losses: false,
            is_dummy: false,
        })
    }
}

/// The profile's events. Several of one name get numbers (`cycles`, `cycles#2`): each is an event
/// of its own, and is selected by its name.
pub(super) fn describe(events: &[EventDescription]) -> Vec<Event> {
    let mut known: FxHashMap<&str, u64> = FxHashMap::default();
    let numbered = events.iter().map(|event| {
        let count = known.entry(&event.name).or_default();
        *count += 1;
        Event {
            unit: unit(event),
            name: match *count {
                1 => event.name.clone(),
                number => format!("{}#{number}", event.name),
            },
        }
    });
    numbered.collect()
}

pub(super) fn unit(event: &EventDescription) -> Unit {
    // include/uapi/linux/perf_event.h: PERF_TYPE_SOFTWARE with PERF_COUNT_SW_CPU_CLOCK and
    // PERF_COUNT_SW_TASK_CLOCK. An event may have been given any name.
    if event.attr.kind == 1 && matches!(event.attr.config, 0 | 1) {
        return Unit::Nanoseconds;
    }
    Unit::of_event(&event.name)
}

#[cfg(test)]
mod tests {
    use prof_perfdata::Attr;

    use super::*;

    #[test]
    fn events_of_one_name_are_numbered() {
        let event = |name: &str| EventDescription {
            attr: Attr::default(),
            name: name.into(),
            ids: Vec::new(),
        };
        let names = ["cycles", "faults", "cycles", "cycles"].map(event);
        let described = describe(&names);
        let names: Vec<_> = described.iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["cycles", "faults", "cycles#2", "cycles#3"]);
    }
}
