//! Source lines as text.

use std::io::{self, Write};

use crate::source::SourceFile;
use crate::view::annotate::{Annotation, Listing, SourceLine};

use super::{CodeCells, Files, Heading, ListingColumns, hunks, in_module, plain};

/// Writes one listing.
pub(super) fn write(
    listing: &Listing,
    annotation: &Annotation<'_>,
    layout: &ListingColumns<'_>,
    files: &mut Files<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let found = listing.file.as_ref().map(|file| files.find(file));
    let (source, remark) = match found {
        None => (
            None,
            "no source: debug info does not say where it is".into(),
        ),
        Some(Ok(source)) => (Some(source), source.path.display().to_string()),
        Some(Err(missing)) => (None, missing.to_string()),
    };
    let last = listing.lines.last().and_then(|line| line.number);
    let width = last.unwrap_or(0).to_string().len().max("Line".len());
    let title = title(listing, annotation);
    let heading = Heading {
        title,
        own: listing.own,
        total: listing.total,
        remark,
    };
    layout.heading(out, &heading, CodeCells::new("Line", width, "Source"))?;
    match source {
        Some(source) => with_source(listing, source, width, layout, out),
        None => {
            for line in &listing.lines {
                let number = number(line);
                let code = CodeCells::new(&number, width, unknown(line));
                layout.line(out, line.own, line.total, code)?;
            }
            Ok(())
        }
    }
}

fn title(listing: &Listing, annotation: &Annotation<'_>) -> String {
    let file = listing.file.as_deref();
    match listing.function {
        Some(function) => {
            let function = &annotation.symbolized()[function];
            in_module(&function.name, &function.module)
        }
        None => file.unwrap_or_default().to_owned(),
    }
}

fn with_source(
    listing: &Listing,
    source: &SourceFile,
    width: usize,
    layout: &ListingColumns<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let count = source.lines.len();
    // Lines that are not in the file: code without a line, and lines of another version of the
    // file.
    let index_of = |line: &SourceLine| {
        (line.number? as usize)
            .checked_sub(1)
            .filter(|&i| i < count)
    };
    let (inside, outside): (Vec<&SourceLine>, Vec<&SourceLine>) = listing
        .lines
        .iter()
        .partition(|line| index_of(line).is_some());
    let mut by_index: Vec<Option<&SourceLine>> = vec![None; count];
    for line in inside {
        if let Some(index) = index_of(line) {
            by_index[index] = Some(line);
        }
    }
    let shown = hunks(count, layout.options.context, |index| {
        by_index[index].is_some()
    });
    let mut before = None;
    for index in (0..count).filter(|&index| shown[index]) {
        if before.is_some_and(|before: usize| before + 1 < index) {
            layout.bare(out, CodeCells::new("…", width, ""))?;
        }
        before = Some(index);
        let number = (index + 1).to_string();
        let text = plain(&source.lines[index]);
        let code = CodeCells::new(&number, width, &text);
        match by_index[index] {
            Some(line) => layout.line(out, line.own, line.total, code)?,
            None => layout.bare(out, code)?,
        }
    }
    for line in outside {
        let (number, text) = match line.number {
            None => (number(line), unknown(line).to_owned()),
            Some(_) => (
                number(line),
                format!("(the file has only {count} lines: it is not the one that was compiled)"),
            ),
        };
        layout.line(
            out,
            line.own,
            line.total,
            CodeCells::new(&number, width, &text),
        )?;
    }
    Ok(())
}

fn number(line: &SourceLine) -> String {
    line.number
        .map_or_else(|| "?".into(), |number| number.to_string())
}

fn unknown(line: &SourceLine) -> &'static str {
    match line.number {
        None => "(code without a known line)",
        Some(_) => "",
    }
}
