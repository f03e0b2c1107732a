//! The changes from one profile to another.

use std::io::{self, Write};

use serde::Serialize;

use super::{Event, Recording, ReportQuality, VERSION, Weight, quality, recording};
use crate::calltree::CallTree;
use crate::view::diff::{Basis, Diff, Row as DiffRow, Side as DiffSide};

/// Writes `diff`, which was made from these two trees.
///
/// # Errors
/// Those of `out`.
pub fn diff(
    before: &CallTree<'_>,
    after: &CallTree<'_>,
    diff: &Diff,
    out: impl Write,
) -> io::Result<()> {
    let document = Document {
        format: "prof-report",
        version: VERSION,
        view: "diff",
        basis: match diff.basis {
            Basis::Weight => "weight",
            Basis::Run => "run",
            Basis::Rate => "rate",
        },
        before: input(before),
        after: input(after),
        whole: row(&diff.whole),
        functions: diff.rows.iter().map(row).collect(),
    };
    crate::format::write_json(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    view: &'static str,
    basis: &'static str,
    before: Input<'a>,
    after: Input<'a>,
    whole: Row<'a>,
    functions: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Input<'a> {
    recording: Recording<'a>,
    quality: Option<ReportQuality<'a>>,
    event: Event<'a>,
    total: Weight,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    module: &'a str,
    before: Side,
    after: Side,
    self_certainty: &'static str,
    total_certainty: &'static str,
}

#[derive(Serialize)]
struct Side {
    self_share: f64,
    self_samples: u64,
    total_share: f64,
    total_samples: u64,
}

fn input<'a>(tree: &CallTree<'a>) -> Input<'a> {
    let symbolized = tree.symbolized();
    Input {
        recording: recording(symbolized),
        quality: quality(symbolized),
        event: tree.event().into(),
        total: tree.total().into(),
    }
}

fn row(row: &DiffRow) -> Row<'_> {
    Row {
        name: &row.function,
        module: &row.module,
        before: side(&row.before),
        after: side(&row.after),
        self_certainty: row.certainty().name(),
        total_certainty: row.total_certainty().name(),
    }
}

fn side(side: &DiffSide) -> Side {
    Side {
        self_share: side.own,
        self_samples: side.samples,
        total_share: side.total,
        total_samples: side.total_samples,
    }
}
