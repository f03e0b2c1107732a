//! Formats: views as text, SVG or another tool's input. All write to an [`io::Write`](std::io::Write).

pub mod flamegraph;
pub mod folded;
pub(crate) mod number;
pub mod table;
