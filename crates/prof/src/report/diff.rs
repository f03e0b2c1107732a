//! `prof diff`: what changed from one recording to another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use prof_console::say;
use prof_report::format::flamegraph::FlameOptions;
use prof_report::format::{diff, differential, json};
use prof_report::view::diff::{Basis, Diff, LimitedShare};
use prof_report::{CallTree, Filter, Split, SymbolizedProfile};

use super::html;
use super::limits::CheckedLimits;
use super::text::terminal_width;
use crate::flags::{DiffFlags, GrowthLimit};
use crate::output::{write_file, write_stdout};
use crate::symbolization::{self, Detail};

/// Compares two recordings: a table, or the pictures that the flags ask for.
///
/// # Errors
///
/// A recording cannot be read or has no samples to compare, the two measure different things, or an
/// output cannot be written.
pub(crate) fn run(flags: DiffFlags) -> Result<CheckedLimits> {
    let detail = Detail::new(flags.filter.no_inline && flags.html.is_none());
    let read = |path: &PathBuf| {
        symbolization::read_with_symbolizer(std::slice::from_ref(path), &flags.symbols, detail)
    };
    let (before, after) = (read(&flags.before)?, read(&flags.after)?);
    let basis = Basis::from(flags.normalize);
    if basis == Basis::Rate && (flags.filter.since.is_some() || flags.filter.until.is_some()) {
        bail!(
            "--normalize rate divides by the length of the whole recording: leave out --since and \
             --until"
        );
    }
    let filter = Filter::from(flags.filter);
    let tree_before = tree(&flags.before, &before.profile, &filter)?;
    let tree_after = tree(&flags.after, &after.profile, &filter)?;
    let graphs = [(&flags.flamegraph, false), (&flags.flamegraph_before, true)];
    for (path, gone) in graphs {
        if let Some(path) = path {
            let options = FlameOptions::default();
            write_file(path, |out| {
                Ok(differential::write(
                    &tree_before,
                    &tree_after,
                    gone,
                    &options,
                    out,
                )?)
            })?;
        }
    }
    let diff = Diff::new(&tree_before, &tree_after, basis)?;
    if let Some(path) = &flags.html {
        let title = format!("{} and {}", flags.before.display(), flags.after.display());
        let files = [flags.before.clone(), flags.after.clone()];
        html::write(path, &title, &[&before, &after], &files, &filter)?;
    }
    if let Some(path) = &flags.json {
        write_file(path, |out| {
            Ok(json::diff(&tree_before, &tree_after, &diff, out)?)
        })?;
    } else if flags.html.is_none() && graphs.iter().all(|(path, _)| path.is_none()) {
        let options = diff::DiffOptions {
            before: flags.before.display().to_string(),
            after: flags.after.display().to_string(),
            width: terminal_width(),
            rows: flags.limit,
            min_change: flags.min_change,
            markdown: flags.markdown,
        };
        write_stdout(|out| Ok(diff::write(&diff, &options, out)?))?;
    }
    print_verdict(&flags.before, &before.profile);
    print_verdict(&flags.after, &after.profile);
    let judged = flags.fail_above.iter();
    let judged = judged.flat_map(|limit| judged_by(limit, &diff)).collect();
    let grown = diff.grown(judged);
    grown.iter().for_each(|one| say(&in_words(one)));
    let trees = [&tree_before, &tree_after];
    Ok(CheckedLimits::new(
        !grown.is_empty(),
        &flags.fail_above,
        &trees,
    ))
}

/// The tree of one of the recordings, which errors name.
fn tree<'p>(path: &Path, profile: &'p SymbolizedProfile, filter: &Filter) -> Result<CallTree<'p>> {
    CallTree::new(profile, filter, Split::default()).with_context(|| path.display().to_string())
}

/// What the limit applies to.
fn judged_by<'a>(limit: &GrowthLimit, diff: &'a Diff) -> Vec<LimitedShare<'a>> {
    let whole = (diff.basis != Basis::Weight && limit.function.is_none()).then_some(&diff.whole);
    let rows = whole.into_iter().chain(&diff.rows);
    let pattern = limit.function.as_ref();
    let matching = rows.filter(|row| pattern.is_none_or(|it| it.matches(&row.function)));
    let judged = matching.map(|row| LimitedShare {
        row,
        with_callees: pattern.is_some(),
        points: limit.points,
    });
    judged.collect()
}

fn in_words(grown: &LimitedShare<'_>) -> String {
    let (before, after) = grown.shares();
    format!(
        "{} grew from {:.2} % to {:.2} %, by more than {} points",
        grown.row.function,
        before * 100.0,
        after * 100.0,
        grown.points
    )
}

/// A comparison is only as good as the worse of its sides.
fn print_verdict(path: &Path, profile: &SymbolizedProfile) {
    if profile.profile().missing_data.quality {
        return;
    }
    let verdict = profile.verdict();
    say(&format_args!("{}: {verdict}", path.display()));
}
