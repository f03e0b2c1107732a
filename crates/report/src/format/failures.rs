//! Unwind failures as a text table.

use std::io::{self, Write};

use prof_model::printable;

use crate::view::failures::{Failures, Row};

use super::number::{grouped, percent};

/// Writes a line on how many stacks are whole, one for each reason why others are not, then the
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
    let shown = &failures.rows[..failures.rows.len().min(rows.unwrap_or(usize::MAX))];
    if shown.is_empty() {
        return Ok(());
    }
    let cells: Vec<[String; 5]> = shown.iter().map(|row| cells(row, share)).collect();
    let titles = ["Stacks", "%", "Where", "Function", "Reason"].map(String::from);
    let width = |column: usize| {
        let cells = cells.iter().chain([&titles]);
        cells
            .map(|cells| cells[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let [w0, w1, w2, w3] = [0, 1, 2, 3].map(width);
    writeln!(out)?;
    for [count, share, place, function, reason] in [&titles].into_iter().chain(&cells) {
        writeln!(
            out,
            "{count:>w0$}  {share:>w1$}  {place:w2$}  {function:w3$}  {reason}"
        )?;
    }
    let left = failures.rows.len() - shown.len();
    if left > 0 {
        let places = if left == 1 { "place" } else { "places" };
        writeln!(out, "… {} more {places}", grouped(left as u64))?;
    }
    Ok(())
}

fn cells(row: &Row, share: impl Fn(u64) -> String) -> [String; 5] {
    let failure = &row.failure;
    let place = match failure.module.as_str() {
        "" => format!("{:#x} (in no module)", failure.offset),
        module => format!("{}+{:#x}", printable(module), failure.offset),
    };
    [
        grouped(failure.count),
        share(failure.count),
        place,
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
