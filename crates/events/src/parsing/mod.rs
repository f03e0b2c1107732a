//! Event names in perf's syntax, and their meaning to the kernel.
//!
//! ```text
//!   text ──(parse: one grammar)──> EventGroup ── EventSpec { Encoding, Modifiers, Terms }
//!            └─ Catalog: sysfs (PMUs), tracefs (tracepoints), ELF files (uprobes)
//! ```
//!
//! The result is plain data: nothing is opened here, and a spec says nothing about whether this
//! machine can count it.

mod breakpoint;
mod catalog;
mod cursor;
mod error;
mod event;
mod meaning;
mod modifiers;
mod parse;
mod pattern;
mod pmu;
mod spec;
mod symbolic;
mod terms;
mod tracepoint;
mod uprobe;

pub use catalog::Catalog;
pub use error::{ParseError, Problem};
pub use modifiers::{Modifiers, Precise};
pub use pattern::matches;
pub use pmu::{Pmu, PmuEvent};
pub use spec::{Encoding, EventGroup, EventSpec, Family};
pub use symbolic::{NamedEvent, cache_events, encoding_of, hardware_events, software_events};
pub use terms::{CallGraphTerm, Terms};
