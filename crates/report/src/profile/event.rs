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
        self.base() == "offcpu-time"
    }

    /// Whether its samples are calls that allocate memory (`prof record --alloc`).
    pub(crate) fn allocates(&self) -> bool {
        matches!(self.base(), "alloc-bytes" | "alloc-calls")
    }

    /// Whether waits are among its samples: those end in the kernel's scheduler.
    pub(crate) fn has_waits(&self) -> bool {
        matches!(self.time(), Some(Time::OffCpu | Time::Wall))
    }

    /// Its name without modifiers (`:u`) and number (`#2`).
    fn base(&self) -> &str {
        let name = &*self.name;
        name.split_once([':', '#']).map_or(name, |(base, _)| base)
    }

    /// The kind of time that it measures, by our names and those in pprof profiles.
    fn time(&self) -> Option<Time> {
        match self.base() {
            "cpu-clock" | "task-clock" | "cpu" => Some(Time::OnCpu),
            "offcpu-time" | "off-cpu" => Some(Time::OffCpu),
            Self::WALL_CLOCK | "wall" => Some(Time::Wall),
            _ => None,
        }
    }

    /// Whether weights of both may be compared: those of an unstated unit may be anything.
    pub(crate) fn compares_with(&self, other: &Self) -> bool {
        if [&self.unit, &other.unit].contains(&&Unit::Unstated) {
            return true;
        }
        let same_time = match (self.time(), other.time()) {
            (Some(time), Some(other)) => time == other,
            _ => true,
        };
        self.unit == other.unit && same_time
    }
}

/// Whose time a clock measures. Times of different kinds must not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    OnCpu,
    OffCpu,
    Wall,
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

    #[test]
    fn numbers_of_events_do_not_matter() {
        let event = |name: &str| Event {
            name: name.into(),
            unit: Unit::Nanoseconds,
        };
        assert!(event("offcpu-time#2").is_off_cpu());
        assert!(!event("cpu-clock#2").compares_with(&event("offcpu-time")));
    }

    #[test]
    fn events_that_measure_different_things_do_not_compare() {
        let event = |name: &str| {
            let unit = match name {
                "" => Unit::Unstated,
                "cpu" | "wall" | "off-cpu" | "delay" | Event::WALL_CLOCK => Unit::Nanoseconds,
                name => Unit::of_event(name),
            };
            let name = name.to_owned();
            Event { name, unit }
        };
        let check = |first, second, expected| {
            for (first, second) in [(first, second), (second, first)] {
                let found = event(first).compares_with(&event(second));
                assert_eq!(found, expected, "{first} {second}");
            }
        };
        check("cpu-clock", "cpu-clock:u", true);
        check("task-clock", "cpu-clock", true);
        check("cpu", "task-clock:u", true);
        check("off-cpu", "offcpu-time", true);
        check("delay", "cpu-clock", true);
        check("", "offcpu-time", true);
        check("", "page-faults", true);
        check("cpu-clock", "offcpu-time:u", false);
        check("task-clock", "wall-clock", false);
        check("wall", "offcpu-time", false);
        check("cpu-clock", "cycles", false);
        check("page-faults", "cycles", false);
    }
}
