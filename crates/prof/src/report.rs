//! `prof report`: a recording to tables and pictures.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_model::{Grade, Verdict};
use prof_perfdata::Recording;
use prof_report::format::{flamegraph, folded, table};
use prof_report::symbolized::ModuleNaming;
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::{Demangle, SymbolOptions, Symbolizer};

use crate::console::Console;
use crate::exit;
use crate::flags::{OutputFlags, ReportFlags};
use crate::output::{write_file, write_stdout};

/// Writes what the flags ask for, and the verdict.
///
/// # Errors
///
/// When the recording cannot be read, holds no samples to show, or an output cannot be written.
pub(crate) fn run(flags: ReportFlags) -> Result<ExitCode> {
    let demangle = if flags.no_demangle {
        Demangle::None
    } else {
        Demangle::Full
    };
    let profile = read(&flags.input, demangle)?;
    let filter = Filter::from(flags.filter);
    let verdict = Verdict::new(profile.quality());
    let split = flags.output.by.map(Split::from);
    let tree = CallTree::new(&profile, &filter, split.unwrap_or_default())?;
    write_outputs(&flags.output, &tree)?;
    tell(&flags.output, &profile, &verdict)?;
    Ok(match verdict.grade {
        Grade::Bad if flags.strict => exit::BAD_VERDICT.into(),
        _ => ExitCode::SUCCESS,
    })
}

/// Draws the flamegraph of a recording that was just made.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn draw_recording(recording: &Path, svg: &Path) -> Result<()> {
    let profile = read(recording, Demangle::Full)?;
    let tree = CallTree::new(&profile, &Filter::default(), Split::default())?;
    draw(svg, &tree, &flamegraph::FlameOptions::default())
}

fn read(input: &Path, demangle: Demangle) -> Result<SymbolizedProfile> {
    let recording = Recording::open(input)?;
    let profile = prof_report::load(recording, &LoadOptions::default())
        .with_context(|| format!("cannot read {}", input.display()))?;
    let options = SymbolOptions {
        demangle,
        ..SymbolOptions::default()
    };
    Ok(SymbolizedProfile::new(profile, &Symbolizer::new(options)))
}

fn write_outputs(flags: &OutputFlags, tree: &CallTree<'_>) -> Result<()> {
    if let Some(path) = &flags.folded {
        write_file(path, |out| Ok(folded::write(tree, out)?))?;
    }
    if let Some(path) = &flags.flamegraph {
        let defaults = flamegraph::FlameOptions::default();
        let options = flamegraph::FlameOptions {
            title: flags.title.clone().unwrap_or(defaults.title),
            inverted: flags.inverted,
            reversed: flags.reverse,
            min_percent: flags.min_percent.max(defaults.min_percent),
            ..defaults
        };
        draw(path, tree, &options)?;
    }
    if wants_table(flags) {
        let options = table::TableOptions {
            width: terminal_width(),
            bars: io::stdout().is_terminal(),
            rows: flags.limit,
            min_percent: flags.min_percent,
        };
        write_stdout(|out| Ok(table::write(tree, &Flat::new(tree), &options, out)?))?;
    }
    Ok(())
}

fn draw(path: &Path, tree: &CallTree<'_>, options: &flamegraph::FlameOptions) -> Result<()> {
    write_file(path, |out| Ok(flamegraph::write(tree, options, out)?))
}

fn wants_table(flags: &OutputFlags) -> bool {
    flags.flamegraph.is_none() && flags.folded.is_none()
}

/// The verdict belongs to the table; with other outputs it must not get into them.
fn tell(flags: &OutputFlags, profile: &SymbolizedProfile, verdict: &Verdict) -> Result<()> {
    let unnamed = unnamed(profile);
    if wants_table(flags) {
        write_stdout(|out| {
            writeln!(out)?;
            unnamed
                .iter()
                .try_for_each(|line| writeln!(out, "{line}"))?;
            Ok(writeln!(out, "{verdict}")?)
        })
    } else {
        let console = Console::new(false, false);
        unnamed.iter().for_each(|line| console.say(line));
        console.say(verdict);
        Ok(())
    }
}

/// The modules that matter and have no names, with reason and remedy.
fn unnamed(profile: &SymbolizedProfile) -> Vec<String> {
    const MOST: usize = 5;
    let samples = profile.profile().samples.len() as u64;
    let matters = |naming: &&ModuleNaming| {
        !naming.status.is_named() && naming.samples.saturating_mul(100) >= samples
    };
    let line = |naming: &ModuleNaming| format!("no names for {naming}");
    profile
        .naming()
        .iter()
        .filter(matters)
        .take(MOST)
        .map(line)
        .collect()
}

fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}
