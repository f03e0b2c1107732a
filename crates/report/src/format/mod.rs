//! Formats: views as text, SVG or another tool's input. All write to an [`io::Write`].

use std::io::{self, BufWriter, Write};

use serde::Serialize;

pub mod annotate;
pub mod coverage;
pub mod csv;
pub mod diff;
pub mod failures;
pub mod firefox;
pub mod flamechart;
pub mod flamegraph;
pub mod folded;
pub mod html;
pub mod json;
pub(crate) mod number;
pub mod otlp;
mod page;
mod palette;
mod places;
pub mod pprof;
pub mod runs;
pub mod script;
pub mod speedscope;
pub mod stack_check;
mod strings;
pub mod table;
#[cfg(test)]
mod tests;
mod threads;
pub mod timeline;
pub mod tree;

/// Writes `value` as JSON in one line.
fn write_json<E: From<io::Error>>(value: &impl Serialize, out: impl Write) -> Result<(), E> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
