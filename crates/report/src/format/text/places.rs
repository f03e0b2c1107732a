//! A text table of places in code.

use std::io::{self, Write};

use prof_model::printable;

use crate::format::number::counted;

/// Rows of a count, its share in percent, a place in code, and more.
pub(in crate::format) struct PlaceTable<const COLUMNS: usize> {
    pub(in crate::format) titles: [&'static str; COLUMNS],
    pub(in crate::format) rows: Vec<[String; COLUMNS]>,
    /// How many rows there are beside these.
    pub(in crate::format) left: usize,
}

impl<const COLUMNS: usize> PlaceTable<COLUMNS> {
    /// The count and its share are aligned to the right, all else to the left.
    const NUMBERS: usize = 2;

    /// Writes an empty line, the titles, the rows, and how many are left; nothing if there is no
    /// row.
    pub(in crate::format) fn write(&self, mut out: impl Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let titles = self.titles.map(String::from);
        let lines = || [&titles].into_iter().chain(&self.rows);
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let widths = lines().map(|cells| cells[column].chars().count());
            widths.max().unwrap_or(0)
        });
        writeln!(out)?;
        for cells in lines() {
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                match column {
                    last if last + 1 == COLUMNS => writeln!(out, "{cell}")?,
                    number if number < Self::NUMBERS => write!(out, "{cell:>width$}  ")?,
                    _ => write!(out, "{cell:width$}  ")?,
                }
            }
        }
        if self.left > 0 {
            writeln!(out, "… {}", counted(self.left as u64, "more place"))?;
        }
        Ok(())
    }
}

/// `module+0xoffset`, or an address that is in no module.
pub(in crate::format) fn place(module: &str, offset: u64) -> String {
    match module {
        "" => format!("{offset:#x} (in no module)"),
        module => format!("{}+{offset:#x}", printable(module)),
    }
}
