//! For other programs: their own formats, and JSON and CSV.

pub mod csv;
pub mod firefox;
pub mod folded;
pub mod json;
pub mod otlp;
pub mod pprof;
pub mod script;
pub mod speedscope;
pub(in crate::format) mod strings;
mod threads;
