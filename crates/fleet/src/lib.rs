//! Profiles of many machines as a data set of open files, and queries over it.
//!
//! ```text
//! recording ──load──> Run ──Destination::push──> a data set, or another receiver of profiles
//! ```
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the first destination comes next")]

mod address;
mod cli;
mod collect;
mod destination;
mod error;
mod http;
mod otlp;
mod pyroscope;
mod run;
mod series;

pub use cli::run;
