//! Profiles of many machines as a data set of open files, and queries over it.
//!
//! ```text
//! recording ──load──> Run ──Destination::push──> a data set, or another receiver of profiles
//! ```
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the first destination comes next")]

mod cli;
mod destination;
mod error;
mod run;

pub use cli::run;
