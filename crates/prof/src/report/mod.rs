//! `prof report` and `prof script`: a recording to tables, pictures and other tools' formats.

mod diff;
mod files;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_model::{Grade, Quality, Verdict};
use prof_perfdata::Recording;
use prof_report::format::{flamegraph::FlameOptions, script};
use prof_report::symbolized::ModuleNaming;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::{Demangle, SymbolOptions, Symbolizer};

pub(crate) use diff::run as diff;

use crate::console::Console;
use crate::exit;
use crate::flags::{ReportFlags, ScriptFlags};
use crate::output::write_stdout;

/// Writes what the flags ask for, and the verdict.
///
/// # Errors
///
/// When the recording cannot be read, holds no samples to show, or an output cannot be written.
pub(crate) fn run(flags: ReportFlags) -> Result<ExitCode> {
    let profile = read(&flags.input, flags.no_demangle)?;
    let verdict = Verdict::new(profile.quality());
    if flags.output.text.unwind_failures {
        text::write_failures(&profile, flags.output.text.limit)?;
    } else {
        let filter = Filter::from(flags.filter);
        let split = flags.output.by.map(Split::from).unwrap_or_default();
        let tree = CallTree::new(&profile, &filter, split)?;
        if flags.output.files.any() {
            files::write(&flags.output, &tree, &filter)?;
            // On the standard error output: the standard output may be one of the files.
            let console = Console::new(false, false);
            unnamed(&profile).iter().for_each(|line| console.say(line));
            console.say(&verdict);
        } else {
            text::write(&flags.output, &tree)?;
            text::write_closing(&unnamed(&profile), &verdict)?;
        }
    }
    Ok(match verdict.grade {
        Grade::Bad if flags.strict => exit::BAD_VERDICT.into(),
        _ => ExitCode::SUCCESS,
    })
}

/// Prints every sample.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn script(flags: ScriptFlags) -> Result<ExitCode> {
    let profile = read(&flags.input, flags.no_demangle)?;
    let filter = Filter::from(flags.filter);
    write_stdout(|out| Ok(script::write(&profile, &filter, out)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Draws the flamegraph of a recording that was just made.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn draw_recording(recording: &Path, svg: &Path) -> Result<()> {
    let profile = read(recording, false)?;
    let tree = CallTree::new(&profile, &Filter::default(), Split::default())?;
    files::draw(svg, &tree, &FlameOptions::default())
}

/// What a recording that was just made is worth, as far as names tell.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn quality(recording: &Path) -> Result<Quality> {
    Ok(read(recording, true)?.quality().clone())
}

fn read(input: &Path, no_demangle: bool) -> Result<SymbolizedProfile> {
    let recording = match Recording::open(input) {
        Err(error) if input != Path::new("-") && !input.exists() => Err(error).context(
            "there is nothing to report (`prof record` makes a recording, `-i FILE` names one)",
        ),
        opened => opened.map_err(Into::into),
    }?;
    let profile = prof_report::load(recording, &LoadOptions::default())?;
    let demangle = match no_demangle {
        true => Demangle::None,
        false => Demangle::Full,
    };
    let options = SymbolOptions {
        demangle,
        ..SymbolOptions::default()
    };
    Ok(SymbolizedProfile::new(profile, &Symbolizer::new(options)))
}

/// The modules that matter and have no names, with reason and remedy.
fn unnamed(profile: &SymbolizedProfile) -> Vec<String> {
    const MOST: usize = 5;
    let samples = profile.profile().samples.len() as u64;
    let matters = |naming: &&ModuleNaming| {
        !naming.status.is_named() && naming.samples.saturating_mul(100) >= samples
    };
    let line = |naming: &ModuleNaming| format!("no names for {naming}");
    let all = profile.naming().iter();
    all.filter(matters).take(MOST).map(line).collect()
}
