//! Recording: samples of a target, unwound as they come, into a perf.data file.
//!
//! ```text
//!   reader thread                        session (the caller's thread)
//!   rings ─ drain ─> bounded buffer ──> time order ──> processes ──> unwinder ──> perf.data
//! ```
#![forbid(unsafe_code)]

mod allocation;
mod anchors;
mod backlog;
mod captured;
mod catching_up;
mod checkpoints;
mod commands;
mod contents;
mod coverage;
mod deep;
mod duplicates;
mod earlier;
mod ending;
mod error;
mod failures;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod haste;
mod held;
mod hits;
mod hotplug;
mod kept;
mod kernel_modules;
mod launch;
mod layout;
mod lives;
mod nearby;
mod options;
mod order;
mod outer;
mod output;
mod probe_coverage;
mod reader;
mod recent;
mod record;
mod restate;
mod rotation;
mod series;
mod session;
mod settings;
mod sleepers;
mod source;
mod steering;
mod stops;
mod synthesize;
mod unwind;
mod waits;

pub use commands::Control;
pub use error::Error;
pub use kept::{KeptFiles, KeptProcess, KeptRoot};
pub use options::{Course, CpuTarget, Delay, How, Options, Storage, Summary, Target};
pub use prof_events::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, MAX_STACK_DUMP, Program, Rate,
    Signals, USUAL_HERTZ, allocations, names,
};
pub use record::record;
pub use rotation::{Rotation, When};
