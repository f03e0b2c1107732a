//! Counting events: cycles, page faults, calls of a function, in a thread, a process, on a CPU or
//! in a cgroup.
//!
//! ```text
//!   Target ──> Group ── add(event) ──> Counter           a Counter also goes alone
//!                │ enable, disable, reset, read: all members at the same moment
//!                v
//!            Snapshot ── values by Counter, a time stamp; subtract, add, copy, zero
//!                └─ Count { value, enabled, running } ── scaled()
//! ```
//!
//! A **group** counts all its members at the same time or none, so that ratios of their counts mean
//! something. The caller owns a **counter**: it continues when the group is dropped, and leaves the
//! group when it is dropped itself. A **snapshot** is a plain value of numbers.
//!
//! ```
//! use prof_counters::{Group, Target, event};
//!
//! let mut group = Group::new(Target::ThisThread)?;
//! let clock = group.add(&event("task-clock:u")?)?;
//! let faults = group.add(&event("page-faults:u")?)?;
//!
//! group.enable()?;
//! let before = group.read()?;
//! let memory = vec![1_u8; 1 << 20];
//! let cost = group.read()?.since(&before)?;
//! group.disable()?;
//!
//! let [faults, clock] = [cost[&faults].value, cost[&clock].value];
//! println!("{faults} faults in {clock} ns for {} bytes", memory.len());
//! assert!(clock > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Multiplexing
//!
//! A CPU has few hardware counters. If more events are requested, the kernel multiplexes them, and
//! each [`Count`] says how long it was enabled and how long it really counted: [`Count::scaled`]
//! estimates the whole. A group that must always count is pinned ([`Options::pinned`]); if it does
//! not fit, reading it is an error ([`ReadError::NotScheduled`]), not zero.
//!
//! # Permissions
//!
//! A plain user may count user code of its own processes (`perf_event_paranoid` at 2, the
//! kernel's default): add `:u` to the event. Errors say what else is missing and what to do.

#![forbid(unsafe_code)]

mod count;
mod counter;
mod error;
mod group;
mod member;
mod place;
mod reader;
mod refusal;
mod snapshot;
mod target;

pub use count::Count;
pub use counter::Counter;
pub use error::{DifferentSets, NotInSet, OpenError, ReadError, ReaderError};
pub use group::Group;
pub use member::CounterId;
pub use place::PlaceName;
pub use prof_events::counting::Inherit;
pub use prof_events::parsing::{Catalog, EventGroup, EventSpec, ParseError};
pub use reader::Reader;
pub use snapshot::Snapshot;
pub use target::{Options, Target};

/// The event of that name, in perf's syntax; see [`Catalog::parse`] for lists of events and for
/// groups.
///
/// ```
/// let event = prof_counters::event("context-switches")?;
/// assert_eq!(event.encoding.config, 3);
/// let error = prof_counters::event("contxt-switches").unwrap_err();
/// assert!(error.to_string().contains("did you mean context-switches?"));
/// # Ok::<(), prof_counters::ParseError>(())
/// ```
///
/// # Errors
///
/// The error in the name, and its place; also if it names more than one event.
pub fn event(name: &str) -> Result<EventSpec, ParseError> {
    let mut groups = Catalog::system().parse(name)?;
    let first = groups
        .pop()
        .filter(|group| groups.is_empty() && group.events.len() == 1);
    first
        .and_then(|mut group| group.events.pop())
        .ok_or_else(|| ParseError {
            text: name.to_owned(),
            place: 0..name.len(),
            problem: Box::new(prof_events::parsing::Problem::Expected {
                expected: "one event",
            }),
        })
}
