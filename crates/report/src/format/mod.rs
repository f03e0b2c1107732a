//! Formats: views as text, SVG or another tool's input. All write to an [`io::Write`].

use std::io::{self, BufWriter, Write};

use serde::Serialize;

mod graph;
pub(crate) mod number;
#[cfg(test)]
mod tests;
mod text;
mod tools;

pub use graph::{differential, flamechart, flamegraph, html};
pub use text::{annotate, coverage, diff, failures, runs, stack_check, table, timeline, tree};
pub use tools::{csv, firefox, folded, json, otlp, pprof, script, speedscope};

/// Writes `value` as JSON in one line.
fn write_json<E: From<io::Error>>(value: &impl Serialize, out: impl Write) -> Result<(), E> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
