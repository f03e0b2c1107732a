//! Instructions with the source between them as text.

use std::io::{self, Write};

use prof_model::printable;
use prof_symbols::SymbolFrame;

use crate::view::annotate::{CodeListing, Instruction};

use super::{CodeCells, Files, Heading, ListingColumns, hunks, in_module, name, plain, short};
use crate::format::number::grouped;

/// Writes one listing: before instructions of another line than those above, that line.
pub(super) fn write(
    listing: &CodeListing,
    layout: &ListingColumns<'_>,
    files: &mut Files<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = in_module(&listing.function, &listing.module);
    let instructions = match &listing.instructions {
        Ok(instructions) => instructions,
        Err(why) => {
            let line = format!("{title}: {why}");
            return writeln!(out, "\n{}", printable(&line));
        }
    };
    let address = |instruction: &Instruction| format!("{:x}", instruction.address);
    let widths = instructions.iter().map(|i| address(i).len());
    let width = widths.max().unwrap_or(0).max("Address".len());
    let remark = remark(instructions.len(), listing.left_out);
    let heading = Heading {
        title,
        own: listing.own,
        total: listing.total,
        remark,
    };
    layout.heading(
        out,
        &heading,
        CodeCells::new("Address", width, "Instruction"),
    )?;
    let has_samples = |index: usize| instructions[index].total.samples > 0;
    let shown = hunks(instructions.len(), layout.options.context, has_samples);
    let mut place = None;
    let mut before = None;
    for (index, instruction) in instructions.iter().enumerate() {
        if !shown[index] {
            continue;
        }
        if before.is_some_and(|before: usize| before + 1 < index) {
            layout.bare(out, CodeCells::new("…", width, ""))?;
            place = None;
        }
        before = Some(index);
        let of = instruction.places.first();
        if of.is_some() && of != place {
            place = of;
            let line = of.map(|of| line(of, files)).unwrap_or_default();
            layout.bare(out, CodeCells::new("", width, &line))?;
        }
        let text = format!("    {}", instruction.text);
        let address = address(instruction);
        layout.line(
            out,
            instruction.own,
            instruction.total,
            CodeCells::new(&address, width, &text),
        )?;
    }
    Ok(())
}

fn remark(count: usize, left_out: u64) -> String {
    let count = grouped(count as u64);
    match left_out {
        0 => format!("{count} instructions"),
        bytes => format!(
            "{count} instructions; the function goes on for {} bytes, which are not shown",
            grouped(bytes)
        ),
    }
}

/// A line's place, its function if inlined, and its text.
fn line(place: &SymbolFrame, files: &mut Files<'_>) -> String {
    let mut line = match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", short(file)),
        (Some(file), None) => short(file).to_owned(),
        (None, _) => "(no line known)".into(),
    };
    if place.inlined {
        line.push_str(&format!(" {} (inlined)", name(&place.function)));
    }
    let source = place.file.as_ref().map(|file| files.find(file));
    let source = source.and_then(|found| found.as_ref().ok());
    if let Some(text) = source.and_then(|source| source.line(place.line?)) {
        line.push_str("  ");
        line.push_str(plain(text).trim());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::remark;

    #[test]
    fn missing_disassembly_is_reported() {
        assert_eq!(remark(1200, 0), "1,200 instructions");
        assert_eq!(
            remark(7, 4096),
            "7 instructions; the function goes on for 4,096 bytes, which are not shown"
        );
    }
}
