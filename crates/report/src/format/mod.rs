//! Formats: views as text, SVG or another tool's input. All write to an [`io::Write`](std::io::Write).

pub mod csv;
pub mod firefox;
pub mod flamegraph;
pub mod folded;
pub mod json;
pub(crate) mod number;
pub mod pprof;
pub mod script;
pub mod speedscope;
pub mod table;
