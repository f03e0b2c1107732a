//! Pictures and files in other tools' formats.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use prof_report::format::flamegraph::FlameOptions;
use prof_report::format::json::CallView;
use prof_report::format::{csv, firefox, flamechart, flamegraph, folded, json, pprof, speedscope};
use prof_report::view::chart::Chart;
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, Split};

use crate::flags::{FileFlags, OutputFlags, TextFlags};
use crate::output::write_file;

/// Writes each requested file.
pub(super) fn write(flags: &OutputFlags, tree: &CallTree<'_>, filter: &Filter) -> Result<()> {
    let files = &flags.files;
    let profile = tree.symbolized();
    if let Some(path) = &files.flamechart {
        let options = FlameOptions {
            min_percent: match flags.min_percent {
                // One sample in ten thousand: zooming shows it.
                0.0 => 0.01,
                given => given,
            },
            ..flame_options(files, flags.min_percent, "Flame Chart")
        };
        let split = flags.by.map_or(Split::Thread, Split::from);
        let chart = Chart::new(profile, filter, split, options.min_percent / 100.0)?;
        write_file(path, |out| Ok(flamechart::write(&chart, &options, out)?))?;
    }
    if let Some(path) = &files.flamegraph {
        draw(
            path,
            tree,
            &flame_options(files, flags.min_percent, "Flame Graph"),
        )?;
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
    if !flags.text.has_json() {
        to(&files.json, &|out| {
            Ok(json::calls(tree, call_view(&flags.text), out)?)
        })?;
    }
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
pub(super) fn draw(path: &Path, tree: &CallTree<'_>, options: &FlameOptions) -> Result<()> {
    write_file(path, |out| Ok(flamegraph::write(tree, options, out)?))
}

/// The options for a picture with this title, unless the flags have another one.
fn flame_options(files: &FileFlags, min_percent: f64, title: &str) -> FlameOptions {
    let defaults = FlameOptions::default();
    FlameOptions {
        title: files.title.clone().unwrap_or_else(|| title.into()),
        width: files.width.map(|width| width as usize),
        palette: files.palette.into(),
        upwards: files.upwards,
        reversed: files.reverse,
        min_percent: match min_percent {
            0.0 => defaults.min_percent,
            given => given,
        },
        ..defaults
    }
}
