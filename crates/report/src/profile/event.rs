//! Events and the units that their periods are in.

use std::borrow::Cow;

/// A sampled event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name, as given to the recorder (`cycles:u`).
    pub name: String,
    /// The unit of its weights.
    pub unit: Unit,
}

impl Event {
    /// The name of the event that is all time, on and off the CPUs, of a recording that has both
    /// (`prof record --wall`).
    pub(crate) const WALL_CLOCK: &'static str = "wall-clock";

    /// Whether its samples are waits: time that threads spend off the CPUs.
    pub(crate) fn is_off_cpu(&self) -> bool {
        self.name.split(':').next() == Some("offcpu-time")
    }
}

/// The unit of a weight. Weights of different units must not be added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Time, of clocks such as `cpu-clock`.
    Nanoseconds,
    /// Occurrences of an event, by their plural (`cycles`, `page faults`).
    Count(Cow<'static, str>),
    /// The file has no unit.
    Unstated,
}

impl Unit {
    /// The unit of the event with this name, modifiers (`:u`) left aside.
    pub fn of_event(name: &str) -> Self {
        let base = name.split_once(':').map_or(name, |(base, _)| base);
        let count = |name| Self::Count(Cow::Borrowed(name));
        match base {
            // perf and prof call the time off the CPUs so.
            "cpu-clock" | "task-clock" | "offcpu-time" => Self::Nanoseconds,
            "cycles" | "cpu-cycles" | "ref-cycles" => count("cycles"),
            "instructions" => count("instructions"),
            "branches" | "branch-instructions" => count("branches"),
            "branch-misses" => count("branch misses"),
            "cache-references" => count("cache references"),
            "cache-misses" => count("cache misses"),
            "page-faults" | "faults" | "minor-faults" | "major-faults" => count("page faults"),
            "context-switches" | "cs" => count("context switches"),
            "alloc-bytes" => count("bytes"),
            "alloc-calls" => count("allocations"),
            "cpu-migrations" | "migrations" => count("migrations"),
            _ => count("events"),
        }
    }

    /// The unit in words, for a count in full (`ns`, `cycles`).
    pub fn name(&self) -> &str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Count(name) => name,
            Self::Unstated => "units",
        }
    }

    /// Whether weights in both units may be compared: an unstated unit is accepted.
    pub(crate) fn compares_with(&self, other: &Self) -> bool {
        self == other || *self == Self::Unstated || *other == Self::Unstated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_events() {
        let check = |name, expected: &str| assert_eq!(Unit::of_event(name).name(), expected);
        check("cpu-clock", "ns");
        check("cpu-clock:u", "ns");
        check("task-clock:ppp", "ns");
        check("cycles:k", "cycles");
        check("sched:sched_switch", "events");
        check("page-faults", "page faults");
    }
}
