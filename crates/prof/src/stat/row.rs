//! The rows: events, each with its name and the source of its counts.

use prof_counters::{Count, EventSpec};

use super::selection::Selection;

/// One event to count.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The event.
    pub(super) event: EventSpec,
    /// Its name in the output.
    pub(super) name: String,
    pub(super) origin: Origin,
}

/// The source of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A counter.
    Counter,
    /// getrusage: a counter would not be allowed to see it.
    Usage,
}

/// One count for each row; `None` if a pinned counter was not on the hardware.
pub(super) type Counts = Vec<Option<Count>>;

impl Row {
    pub(super) fn new(event: &EventSpec, selection: &Selection, origin: Origin) -> Self {
        let named = selection.groups.iter().flat_map(|group| &group.events);
        let is_selected = named.clone().any(|selected| selected == event);
        let name = match origin {
            // The clocks run in any code, so nothing was left out.
            Origin::Counter if !is_selected && event.is_clock() => event.name.clone(),
            Origin::Counter => event.to_string(),
            Origin::Usage => event.name.clone(),
        };
        Self {
            event: event.clone(),
            name,
            origin,
        }
    }

    /// A note if the event happens in the kernel only: with `:u` its count is zero, which looks
    /// like a result.
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
