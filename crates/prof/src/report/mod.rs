//! `prof report` and `prof script`: a recording to tables, pictures and other tools' formats.

mod diff;
mod files;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use prof_model::{Grade, Quality, Verdict};
use prof_report::format::{flamegraph::FlameOptions, script};
use prof_report::{CallTree, Filter, Split};

pub(crate) use diff::run as diff;

use crate::console::Console;
use crate::exit;
use crate::flags::{ReportFlags, ScriptFlags, ServerFlags, SymbolFlags};
use crate::names::{self, Detail};
use crate::output::write_stdout;

/// Writes what the flags ask for, and the verdict.
///
/// # Errors
///
/// When the recording cannot be read, holds no samples to show, or an output cannot be written.
pub(crate) fn run(flags: ReportFlags) -> Result<ExitCode> {
    let profile = names::read(
        &flags.input,
        &flags.symbols,
        Detail::new(flags.filter.no_inline),
    )?;
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
            names::unnamed(profile.naming())
                .iter()
                .for_each(|line| console.say(line));
            console.say(&verdict);
        } else {
            text::write(&flags.output, &tree)?;
            text::write_closing(&names::unnamed(profile.naming()), &verdict)?;
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
    let profile = names::read(
        &flags.input,
        &flags.symbols,
        Detail::new(flags.filter.no_inline),
    )?;
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
    let profile = names::read(recording, &SymbolFlags::default(), Detail::Inlines)?;
    let tree = CallTree::new(&profile, &Filter::default(), Split::default())?;
    files::draw(svg, &tree, &FlameOptions::default())
}

/// What a recording that was just made is worth, as far as names tell.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn quality(recording: &Path) -> Result<Quality> {
    let flags = SymbolFlags {
        servers: ServerFlags {
            no_debuginfod: true,
            ..ServerFlags::default()
        },
        ..SymbolFlags::default()
    };
    let profile = names::read(recording, &flags, Detail::Functions)?;
    Ok(profile.quality().clone())
}
