//! What is counted: events, each with its name and where its counts come from.

use prof_counters::{Count, EventSpec};

use super::wanted::Wanted;

/// One event, as it is counted.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What is counted.
    pub(super) event: EventSpec,
    /// What it is called.
    pub(super) name: String,
    pub(super) origin: Origin,
}

/// Where a count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A counter.
    Counter,
    /// What the kernel notes down of a process: a counter would not be allowed to see it.
    Usage,
}

/// One count of each row; `None` where a pinned counter found no room.
pub(super) type Counts = Vec<Option<Count>>;

impl Row {
    pub(super) fn new(event: &EventSpec, wanted: &Wanted, origin: Origin) -> Self {
        let named = wanted.groups.iter().flat_map(|group| &group.events);
        let as_wanted = named.clone().any(|wanted| wanted == event);
        let name = match origin {
            // The clocks run whoever's code it is, so nothing was left out.
            Origin::Counter if !as_wanted && event.is_clock() => event.name.clone(),
            Origin::Counter => event.to_string(),
            Origin::Usage => event.name.clone(),
        };
        Self {
            event: event.clone(),
            name,
            origin,
        }
    }

    /// What is counted where no user code runs is zero with `:u`, which looks like an answer.
    pub(super) fn always_zero(&self) -> Option<String> {
        let hidden = self.origin == Origin::Counter && !self.event.modifiers.kernel;
        let zero = hidden && self.event.happens_in_kernel_only();
        zero.then(|| {
            format!(
                "{} is always 0, because it happens in the kernel: leave out :u",
                self.name
            )
        })
    }
}
