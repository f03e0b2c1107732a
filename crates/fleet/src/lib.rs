//! Profiles of many machines as a data set of open files, and queries over it.
//!
//! ```text
//! recording ──load──> Run ──Destination::push──> a data set, or another receiver of profiles
//!                                                   │
//!                  views of prof-report <──query────┘
//! ```
//! docs/fleet.md describes the data set for users; [`run`] is all that the program calls.
#![forbid(unsafe_code)]

mod address;
mod cli;
mod collect;
mod dataset;
mod destination;
mod error;
mod fuzz;
mod http;
mod otlp;
mod pyroscope;
mod query;
mod run;
mod series;
mod spool;
mod store;
mod table;
mod upkeep;

pub use cli::run;
pub use fuzz::read_tables;
