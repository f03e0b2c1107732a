//! The comparison of two groups of runs as Markdown, which is readable as text, too.

use std::io::{self, Write};

use crate::view::diff::RunsDiff;
use crate::view::diff::RunsRow;

use super::diff::escape;
use crate::format::number::{counted, percent};

/// The names in the comparison, and the rows to show.
#[derive(Clone, Debug, Default)]
pub struct RunsOptions {
    /// The command, as typed.
    pub command: String,
    /// The program or the directory of the runs before.
    pub baseline: String,
    /// The verdict on the recordings, in a word.
    pub verdict: String,
    /// Whether a run costs more than is allowed.
    pub costs_more: bool,
    /// The maximum number of rows.
    pub rows: usize,
}

/// Writes `diff`; `failed` says of a row whether it grew by more than is allowed.
///
/// # Errors
/// Those of `out`.
pub fn write(
    diff: &RunsDiff,
    options: &RunsOptions,
    failed: impl Fn(&RunsRow) -> bool,
    mut out: impl Write,
) -> io::Result<()> {
    let headline = headline(diff, options, &failed);
    writeln!(out, "## prof ci: {headline}\n")?;
    writeln!(
        out,
        "- {}: {} runs, {}; before ({}): {} runs, {}",
        escape(&options.command),
        diff.after.count,
        counted(diff.after.samples, "sample"),
        escape(&options.baseline),
        diff.before.count,
        counted(diff.before.samples, "sample"),
    )?;
    let change = diff.cost_change() * 100.0;
    let noise = diff.cost_noise * 100.0;
    let word = mark(options.costs_more, diff.is_cost_certain());
    writeln!(
        out,
        "- cost of a run: {change:+.1} % (noise ± {noise:.1}): {word}"
    )?;
    writeln!(out, "- verdict: {}\n", options.verdict)?;
    writeln!(
        out,
        "| Before % | After % | Change | Noise ± | | Function | Module |"
    )?;
    writeln!(out, "|--:|--:|--:|--:|---|---|---|")?;
    let mut rows: Vec<&RunsRow> = diff.rows.iter().collect();
    rows.sort_by(|a, b| {
        let by_failure = failed(b).cmp(&failed(a));
        by_failure.then(b.change().abs().total_cmp(&a.change().abs()))
    });
    for row in rows.iter().take(options.rows) {
        let word = mark(failed(row), row.is_certain());
        writeln!(
            out,
            "| {} | {} | {:+.2} | {:.2} | {word} | {} | {} |",
            percent(row.before),
            percent(row.after),
            row.change() * 100.0,
            row.noise * 100.0,
            escape(&row.function),
            escape(&row.module),
        )?;
    }
    Ok(())
}

/// The growth in a line.
fn headline(diff: &RunsDiff, options: &RunsOptions, failed: impl Fn(&RunsRow) -> bool) -> String {
    let grew = diff.rows.iter().filter(|row| failed(row));
    let grew: Vec<String> = grew.map(|row| escape(&row.function)).collect();
    let cost = format!("a run costs {:.1} % more", diff.cost_change() * 100.0);
    let functions = match grew.as_slice() {
        [] if options.costs_more => return cost,
        [] => return "nothing grew".to_owned(),
        [one] => format!("{one} grew"),
        several => format!("{} functions grew: {}", several.len(), several.join(", ")),
    };
    match options.costs_more {
        true => format!("{functions}; {cost}"),
        false => functions,
    }
}

fn mark(has_failed: bool, is_certain: bool) -> &'static str {
    match (has_failed, is_certain) {
        (true, _) => "**grew**",
        (false, true) => "clear",
        (false, false) => "noise",
    }
}
