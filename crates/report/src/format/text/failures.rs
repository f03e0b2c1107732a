//! Unwind failures as a text table.

use std::io::{self, Write};

use crate::view::failures::{Failures, Row};

use super::places::{PlaceTable, place};
use crate::format::number::{grouped, percent};

/// Writes a line with the number of whole stacks, one for each reason of partial ones, then the
/// places where unwinding stopped, at most `rows` of them.
///
/// The columns of the places, separated by two spaces: stacks, share of all stacks in percent,
/// module + offset (what to look up in the file), function, reason.
///
/// # Errors
/// Those of `out`.
pub fn write(failures: &Failures, rows: Option<usize>, mut out: impl Write) -> io::Result<()> {
    let share = |count: u64| percent(count as f64 / failures.stacks.max(1) as f64);
    writeln!(
        out,
        "{} of {} user stacks are whole ({} %)",
        grouped(failures.whole),
        grouped(failures.stacks),
        share(failures.whole)
    )?;
    for &(end, count) in &failures.reasons {
        writeln!(
            out,
            "  {} ({} %): {}",
            grouped(count),
            share(count),
            end.describe()
        )?;
    }
    let shown = failures.rows.iter().take(rows.unwrap_or(usize::MAX));
    let rows: Vec<[String; 5]> = shown.map(|row| cells(row, share)).collect();
    PlaceTable {
        titles: ["Stacks", "%", "Where", "Function", "Reason"],
        left: failures.rows.len() - rows.len(),
        rows,
    }
    .write(out)
}

fn cells(row: &Row, share: impl Fn(u64) -> String) -> [String; 5] {
    let failure = &row.failure;
    [
        grouped(failure.count),
        share(failure.count),
        place(&failure.module, failure.offset),
        row.function.as_deref().unwrap_or("-").to_owned(),
        failure.end.describe().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_golden, demo_with_failures};

    #[test]
    fn golden() {
        let mut text = Vec::new();
        write(&Failures::new(&demo_with_failures()), Some(2), &mut text).unwrap();
        check_golden("failures.txt", &text);
    }
}
