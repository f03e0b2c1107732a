//! Pictures and other tools' formats.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use prof_report::format::json::CallView;
use prof_report::format::{csv, firefox, flamegraph, folded, json, pprof, speedscope};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter};

use crate::flags::{FileFlags, OutputFlags, TextFlags};
use crate::output::write_file;

/// Writes each file that the flags ask for.
pub(super) fn write(flags: &OutputFlags, tree: &CallTree<'_>, filter: &Filter) -> Result<()> {
    let files = &flags.files;
    let profile = tree.symbolized();
    if let Some(path) = &files.flamegraph {
        draw(path, tree, &flame_options(files, flags.min_percent))?;
    }
    let to = |path: &Option<PathBuf>, fill: &dyn Fn(&mut dyn Write) -> Result<()>| match path {
        Some(path) => write_file(path, fill),
        None => Ok(()),
    };
    to(&files.folded, &|out| Ok(folded::write(tree, out)?))?;
    to(&files.pprof, &|out| Ok(pprof::write(profile, filter, out)?))?;
    to(&files.firefox, &|out| {
        Ok(firefox::write(profile, filter, out)?)
    })?;
    to(&files.speedscope, &|out| {
        Ok(speedscope::write(profile, filter, out)?)
    })?;
    to(&files.json, &|out| {
        Ok(json::calls(tree, call_view(&flags.text), out)?)
    })?;
    to(&files.csv, &|out| {
        Ok(csv::write(tree, &Flat::new(tree), out)?)
    })
}

fn call_view(flags: &TextFlags) -> CallView {
    match (&flags.callers, &flags.callees) {
        (Some(_), _) => CallView::Callers,
        (_, Some(_)) => CallView::Callees,
        _ => CallView::Calls,
    }
}

/// Draws a flamegraph.
pub(super) fn draw(
    path: &Path,
    tree: &CallTree<'_>,
    options: &flamegraph::FlameOptions,
) -> Result<()> {
    write_file(path, |out| Ok(flamegraph::write(tree, options, out)?))
}

fn flame_options(files: &FileFlags, min_percent: f64) -> flamegraph::FlameOptions {
    let defaults = flamegraph::FlameOptions::default();
    flamegraph::FlameOptions {
        title: files.title.clone().unwrap_or(defaults.title),
        inverted: files.inverted,
        reversed: files.reverse,
        min_percent: min_percent.max(defaults.min_percent),
        ..defaults
    }
}
