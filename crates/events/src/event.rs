//! What to sample by, as people say it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The largest `sample_stack_user`: a multiple of 8 under the 16 bits of a record's size.
pub const MAX_STACK_DUMP: u32 = 65_528;

/// What makes a sample come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// CPU cycles, counted by the PMU (`PERF_COUNT_HW_CPU_CYCLES`).
    Cycles,
    /// The CPU's clock, in nanoseconds (`PERF_COUNT_SW_CPU_CLOCK`).
    CpuClock,
    /// Time that the thread was on a CPU, in nanoseconds (`PERF_COUNT_SW_TASK_CLOCK`).
    TaskClock,
}

impl Source {
    /// The name that perf and prof know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
            Self::TaskClock => "task-clock",
        }
    }
}

/// What to sample by: a source, and whose code counts.
///
/// Written as perf writes it: `cycles`, `cpu-clock:u`, `task-clock:k`, `cycles:uk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What makes a sample come.
    pub source: Source,
    /// Whether user code is sampled.
    pub user: bool,
    /// Whether kernel code is sampled.
    pub kernel: bool,
    /// Whether `:u` or `:k` was asked for by name: then there is no falling back to less.
    pub explicit_modes: bool,
}

impl Event {
    /// This source, in user and kernel code if the latter is allowed.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            user: true,
            kernel: true,
            explicit_modes: false,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())?;
        match (self.user, self.kernel) {
            (true, false) => f.write_str(":u"),
            (false, true) => f.write_str(":k"),
            _ if self.explicit_modes => f.write_str(":uk"),
            _ => Ok(()),
        }
    }
}

/// An event that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown event {0:?}: use cycles, cpu-clock or task-clock, with :u for user code or :k for kernel code only"
)]
pub struct UnknownEvent(String);

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        let unknown = || UnknownEvent(text.to_owned());
        let (name, modifiers) = text.split_once(':').unwrap_or((text, "uk"));
        let source = match name {
            "cycles" | "cpu-cycles" => Source::Cycles,
            "cpu-clock" => Source::CpuClock,
            "task-clock" => Source::TaskClock,
            _ => return Err(unknown()),
        };
        if modifiers.is_empty() || !modifiers.chars().all(|c| matches!(c, 'u' | 'k')) {
            return Err(unknown());
        }
        Ok(Self {
            source,
            user: modifiers.contains('u'),
            kernel: modifiers.contains('k'),
            explicit_modes: text.contains(':'),
        })
    }
}

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Samples per second of each thread.
    Hertz(u64),
    /// As many samples per second as the kernel allows.
    Maximum,
    /// One sample each so many events (nanoseconds for the clocks).
    Period(u64),
}

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// Registers and a copy of the stack come with each sample, for unwinding with the program's
    /// unwind tables.
    Dwarf {
        /// Bytes of stack to copy, at most [`MAX_STACK_DUMP`]; what suits the ring if `None`.
        dump: Option<u32>,
    },
    /// The kernel follows frame pointers.
    FramePointers,
    /// Only the address is sampled.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let event = text.parse::<Event>().ok().map(|event| event.to_string());
        assert_eq!(event.as_deref(), expected, "{text}");
    }

    #[test]
    fn events_are_written_as_perf_writes_them() {
        check("cycles", Some("cycles"));
        check("cpu-cycles:u", Some("cycles:u"));
        check("cpu-clock:k", Some("cpu-clock:k"));
        check("task-clock:ku", Some("task-clock:uk"));
        for unknown in ["", "cycle", "cycles:", "cycles:x", ":u", "cycles:u:k"] {
            check(unknown, None);
        }
    }
}
