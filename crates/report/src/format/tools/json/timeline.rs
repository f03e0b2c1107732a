//! Activity over time.

use std::io::{self, Write};

use serde::Serialize;

use super::{Document, Event, Weight};
use crate::view::timeline::{Row as TimelineRow, Timeline};

/// Writes a timeline.
///
/// # Errors
/// Those of `out`.
pub fn timeline(timeline: &Timeline<'_>, out: impl Write) -> io::Result<()> {
    let body = Body {
        event: timeline.event.into(),
        total: timeline.total.into(),
        start: timeline.start,
        step: timeline.step,
        rows: timeline.rows.iter().map(row).collect(),
    };
    Document::write(timeline.symbolized(), "timeline", body, out)
}

#[derive(Serialize)]
struct Body<'a> {
    event: Event<'a>,
    total: Weight,
    start: u64,
    step: u64,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    total: Weight,
    values: &'a [u64],
}

fn row(row: &TimelineRow) -> Row<'_> {
    Row {
        name: &row.name,
        total: row.total.into(),
        values: &row.values,
    }
}
