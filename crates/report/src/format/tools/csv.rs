//! The flat table as comma-separated values (RFC 4180), one row for each function.
//!
//! Columns: `function`, `module`, `kind`, `self`, `self_percent`, `self_samples`, `total`,
//! `total_percent`, `total_samples`, `unit`, `event`. Weights are whole numbers in `unit`. A text
//! that a spreadsheet would take for a formula (`-[NSString length]`) has an apostrophe before it.

use std::io::{self, Write};

use crate::calltree::CallTree;
use crate::view::flat::{Flat, Row};

use crate::format::number::percent;

const COLUMNS: [&str; 11] = [
    "function",
    "module",
    "kind",
    "self",
    "self_percent",
    "self_samples",
    "total",
    "total_percent",
    "total_samples",
    "unit",
    "event",
];

/// Writes all functions of `tree`, the one with most weight of its own first.
///
/// # Errors
/// Those of `out`.
pub fn write(tree: &CallTree<'_>, flat: &Flat, out: impl Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(out);
    out.write_record(COLUMNS).map_err(io_error)?;
    for row in &flat.rows {
        let written = out.write_record(cells(row, flat, tree));
        written.map_err(io_error)?;
    }
    out.flush()
}

/// The error of the output itself, so that callers know a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

fn cells(row: &Row, flat: &Flat, tree: &CallTree<'_>) -> [String; COLUMNS.len()] {
    let function = &tree.symbolized()[row.function];
    let event = tree.event();
    [
        text(&function.name),
        text(&function.module),
        function.kind.name().to_owned(),
        row.own.value.to_string(),
        percent(row.own.share_of(flat.total)),
        row.own.samples.to_string(),
        row.total.value.to_string(),
        percent(row.total.share_of(flat.total)),
        row.total.samples.to_string(),
        text(event.unit.name()),
        text(&event.name),
    ]
}

/// Spreadsheets take a cell that begins with these characters for a formula, and an apostrophe for
/// the start of a text.
fn text(cell: &str) -> String {
    match cell.starts_with(['=', '+', '-', '@']) {
        true => format!("'{cell}"),
        false => cell.to_owned(),
    }
}
