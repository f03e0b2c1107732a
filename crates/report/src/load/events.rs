//! What the events of a recording say about its samples.

use prof_perfdata::{EventDescription, SampleType};

use crate::profile::{Event, Unit};

/// The traits of events that loading samples depends on; in a recording from a pipe, events may
/// come late.
#[derive(Clone, Debug, Default)]
pub(super) struct EventTraits {
    has_chains: Vec<bool>,
}

impl EventTraits {
    pub(super) fn update(&mut self, events: &[EventDescription]) {
        if events.len() != self.has_chains.len() {
            self.has_chains = events
                .iter()
                .map(|event| event.attr.sample_type.contains(SampleType::CALLCHAIN))
                .collect();
        }
    }

    /// Whether samples of the event have call chains.
    pub(super) fn has_chains(&self, event: usize) -> bool {
        self.has_chains.get(event).copied().unwrap_or(true)
    }
}

pub(super) fn describe(event: &EventDescription) -> Event {
    Event {
        unit: unit(event),
        name: event.name.clone(),
    }
}

fn unit(event: &EventDescription) -> Unit {
    // include/uapi/linux/perf_event.h: PERF_TYPE_SOFTWARE with PERF_COUNT_SW_CPU_CLOCK and
    // PERF_COUNT_SW_TASK_CLOCK. An event may have been given any name.
    if event.attr.kind == 1 && matches!(event.attr.config, 0 | 1) {
        return Unit::Nanoseconds;
    }
    Unit::of_event(&event.name)
}
