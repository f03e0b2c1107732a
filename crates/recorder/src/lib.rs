//! Recording: samples of a target, unwound as they come, into a perf.data file.
//!
//! ```text
//!   reader thread                        session (the caller's thread)
//!   rings ─ drain ─> bounded buffer ──> time order ──> processes ──> unwinder ──> perf.data
//! ```
#![forbid(unsafe_code)]

mod checkpoints;
mod control;
mod coverage;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod launch;
mod lifecycle;
mod offcpu;
mod options;
mod output;
mod probe_coverage;
mod queue;
mod reader;
mod record;
mod session;
mod settings;
mod source;
mod summary;

pub use control::Control;
pub use error::Error;
pub use options::{
    Backend, CpuTarget, Delay, Live, Options, Rotation, Schedule, Storage, Target, When,
};
pub use output::pinned_files::{PinnedFiles, PinnedProcess, PinnedRoot};
pub use prof_events::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, MAX_STACK_DUMP, Program, Rate,
    Signals, USUAL_HERTZ, allocations, names,
};
pub use record::record;
pub use summary::{Summary, Wakeups};
