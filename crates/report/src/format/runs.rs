//! The comparison of two groups of runs as Markdown, which is readable as text, too.

use std::io::{self, Write};

use crate::view::diff::RunsDiff;
use crate::view::diff::RunsRow;

use super::diff::escape;
use super::number::{grouped, percent};

/// What the comparison is called, and which rows are shown.
#[derive(Clone, Debug, Default)]
pub struct RunsOptions {
    /// What was run, as it was typed.
    pub command: String,
    /// Where the runs before are.
    pub baseline: String,
    /// What the recordings are worth, in a word.
    pub verdict: String,
    /// At most so many rows.
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
    let grew: Vec<String> = diff
        .rows
        .iter()
        .filter(|row| failed(row))
        .map(|row| escape(&row.function))
        .collect();
    let headline = match grew.as_slice() {
        [] => "no function grew".to_owned(),
        [one] => format!("{one} grew"),
        several => format!("{} functions grew: {}", several.len(), several.join(", ")),
    };
    writeln!(out, "## prof ci: {headline}\n")?;
    writeln!(
        out,
        "- {}: {} runs, {} samples; before ({}): {} runs, {} samples",
        escape(&options.command),
        diff.runs.1,
        grouped(diff.samples.1),
        escape(&options.baseline),
        diff.runs.0,
        grouped(diff.samples.0),
    )?;
    let change = (diff.cost.1 / diff.cost.0.max(1.0) - 1.0) * 100.0;
    let noise = diff.cost_noise * 100.0;
    writeln!(out, "- cost of a run: {change:+.1} % (noise ± {noise:.1})")?;
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
        let word = match (failed(row), row.is_certain()) {
            (true, _) => "**grew**",
            (false, true) => "clear",
            (false, false) => "noise",
        };
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
