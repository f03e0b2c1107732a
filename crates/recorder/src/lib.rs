//! Recording: samples of a target, unwound as they arrive, into a perf.data file.
//!
//! ```text
//!   reader thread                        session (the caller's thread)
//!   rings ─ drain ─> bounded buffer ──> time order ──> processes ──> unwinder ──> perf.data
//! ```
//!
//! ```
//! use prof_recorder::{Options, Program, Signals, Target};
//!
//! // First of all: threads that are made later leave signals to the recording, too.
//! let signals = Signals::block()?;
//! let command = ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"];
//! let target = Target::Command(Program::new(command));
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("prof.data");
//!
//! let summary = prof_recorder::record(&Options::new(target, &path), &signals)?;
//!
//! assert!(summary.samples > 0 && summary.exit.is_some_and(|exit| exit.success()));
//! println!("{}", prof_model::Verdict::new(&summary.quality));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod control;
mod coverage;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod lifecycle;
mod live;
mod live_names;
mod offcpu;
mod options;
mod output;
mod queue;
mod reader;
mod record;
mod session;
mod settings;
mod source;
mod stack_outcome;
mod summary;

pub use control::Control;
pub use error::Error;
pub use live_names::LiveNames;
pub use options::{
    Backend, CpuTarget, Delay, Options, ResourceLimits, Rotation, Schedule, Storage, Streaming,
    Target, When,
};
pub use output::pinned_files::{PinnedFiles, PinnedProcess, PinnedRoot};
pub use prof_events::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, MAX_STACK_DUMP, Program, Rate,
    Signals, USUAL_HERTZ, allocations, parsing,
};
pub use record::record;
pub use summary::{Summary, Wakeups};
