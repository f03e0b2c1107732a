//! Where unwinding stopped.

use std::io::{self, Write};

use prof_model::StackEnd;
use serde::Serialize;

use super::Document;
use crate::symbolize::SymbolizedProfile;
use crate::view::failures::{Failures, Row};

/// Writes where unwinding failed in a profile.
///
/// # Errors
/// Those of `out`.
pub fn failures(symbolized: &SymbolizedProfile, out: impl Write) -> io::Result<()> {
    let failures = Failures::new(symbolized);
    let body = Body {
        failures: failures.rows.iter().map(failure).collect(),
    };
    Document::write(symbolized, "unwind_failures", body, out)
}

#[derive(Serialize)]
struct Body<'a> {
    failures: Vec<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    reason: StackEnd,
    module: Option<&'a str>,
    offset: u64,
    function: Option<&'a str>,
    stacks: u64,
}

fn failure(row: &Row) -> Failure<'_> {
    Failure {
        reason: row.failure.end,
        module: Some(row.failure.module.as_str()).filter(|module| !module.is_empty()),
        offset: row.failure.offset,
        function: row.function.as_deref(),
        stacks: row.failure.count,
    }
}
