//! `prof report` and `prof script`: a recording to tables, pictures and other tools' formats.

mod annotate;
mod closing;
mod diff;
mod files;
mod html;
mod limits;
mod text;
mod timeline;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use prof_model::Quality;
use prof_report::format::{flamegraph::FlameOptions, json, script};
use prof_report::view::stack_check::NamedStackCheck;
use prof_report::{CallTree, Filter, Split, StackCopies};

pub(crate) use annotate::run as annotate;
pub(crate) use diff::run as diff;
pub(crate) use html::{show_in_browser, view, write_recording as write_page};
pub(crate) use limits::CheckedLimits;

use closing::{ReportQuality, asides, print_closing};

use crate::exit;
use crate::flags::{ReportFlags, ScriptFlags, SymbolFlags};
use crate::output::{write_file, write_stdout};
use crate::symbolization::{self, Detail};

/// Writes the requested outputs, and the verdict.
///
/// # Errors
///
/// The recording cannot be read, holds no samples to show, or an output cannot be written.
pub(crate) fn run(flags: ReportFlags) -> Result<ExitCode> {
    let inputs = flags.inputs().to_vec();
    let output = &flags.output;
    output.check_standard_output()?;
    // The page has its own checkbox for inlined functions.
    let no_inline = flags.filter.no_inline && output.files.html.is_none();
    let copies = match output.text.check_stacks {
        true => StackCopies::Check,
        false => flags.unwinder.into(),
    };
    let detail = Detail::new(no_inline);
    let named = symbolization::read_copies(&inputs, copies, &flags.symbols, detail)?;
    let profile = &named.profile;
    let quality = ReportQuality::of(profile);
    let filter = Filter::from(flags.filter);
    if output.text.unwind_failures {
        match &output.files.json {
            Some(path) => write_file(path, |out| Ok(json::failures(profile, out)?))?,
            None => text::write_failures(profile, output.text.limit)?,
        }
    } else if let Some(found) = NamedStackCheck::new(profile) {
        match &output.files.json {
            Some(path) => write_file(path, |out| Ok(json::stack_check(profile, &found, out)?))?,
            None => text::write_stack_check(&found, output.text.limit)?,
        }
    } else if let Some(picture) = &output.text.timeline {
        timeline::write(output, picture.as_deref(), profile, &filter)?;
    } else if output.text.coverage {
        text::write_coverage(profile.quality(), output.text.limit)?;
    }
    // Without another view, the recording is shown by functions or calls.
    let has_view = output.text.has_view();
    if !has_view || output.call_files().next().is_some() {
        let split = output.split().map(Split::from).unwrap_or_default();
        let calls = CallTree::new(profile, &filter, split)?;
        let tree = match (&output.text.callers, &output.text.callees) {
            (Some(pattern), _) => calls.callers_of(pattern)?,
            (_, Some(pattern)) => calls.callees_of(pattern)?,
            _ => calls,
        };
        if let Some(path) = &output.files.html {
            let default = html::title_of(profile, &inputs[0]);
            let title = output.files.title.as_deref().unwrap_or(&default);
            html::write(path, title, &[&named], &inputs, &filter)?;
        }
        files::write(output, &tree, &filter)?;
        if !has_view && output.wants_calls() {
            text::write(output, &tree)?;
        }
        let asides = asides(profile, tree.event());
        match output.call_files().next() {
            Some(_) => print_closing(&asides, &quality),
            None => text::write_closing(&asides, &quality)?,
        }
    }
    Ok(match flags.strict && !quality.is_trusted() {
        true => exit::CHECK_FAILED.into(),
        false => ExitCode::SUCCESS,
    })
}

/// Prints every sample. The verdict is printed if it is not good: readers of the samples should
/// know.
///
/// # Errors
///
/// The same errors as [`run`].
pub(crate) fn script(flags: ScriptFlags) -> Result<ExitCode> {
    let profile = symbolization::read(
        flags.inputs(),
        &flags.symbols,
        Detail::new(flags.filter.no_inline),
    )?;
    let filter = Filter::from(flags.filter);
    write_stdout(|out| Ok(script::write(&profile, &filter, out)?))?;
    let quality = ReportQuality::of(&profile);
    if !quality.is_good() {
        print_closing(&[], &quality);
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws the flamegraph of a new recording.
///
/// # Errors
///
/// The same errors as [`run`].
pub(crate) fn draw_recording(recording: &Path, svg: &Path, filter: &Filter) -> Result<()> {
    let profile = symbolization::read(
        &[recording.to_owned()],
        &SymbolFlags::default(),
        Detail::new(filter.no_inline),
    )?;
    let tree = CallTree::new(&profile, filter, Split::default())?;
    files::draw(svg, &tree, &FlameOptions::default())
}

/// The quality of a new recording, in one file or several, as far as symbols reveal it.
///
/// # Errors
///
/// It cannot be read.
pub(crate) fn quality(recording: &[PathBuf]) -> Result<Quality> {
    let profile = symbolization::read(recording, &SymbolFlags::offline(), Detail::Functions)?;
    Ok(profile.quality().clone())
}
