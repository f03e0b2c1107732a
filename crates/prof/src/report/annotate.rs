//! `prof annotate`: source lines and instructions with their weights.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use prof_report::Filter;
use prof_report::format::annotate::{self, AnnotateOptions};
use prof_report::format::json;
use prof_report::view::annotate::{Annotation, Wanted};

use super::closing::{ReportQuality, asides, print_closing};
use super::text;
use crate::flags::AnnotateFlags;
use crate::output::{write_file, write_stdout};
use crate::symbolization::{self, Detail};

/// Writes the lines of a function or a file.
///
/// # Errors
///
/// The recording cannot be read, holds no samples of the requested code, or the output cannot be
/// written.
pub(crate) fn run(flags: AnnotateFlags) -> Result<ExitCode> {
    let sources = flags.sources();
    // Lines are in the same debug info as inlined functions; `--no-inline` only hides the latter.
    let named =
        symbolization::read_with_symbolizer(&flags.input.inputs, &flags.symbols, Detail::Inlines)?;
    let filter = Filter::from(flags.filter);
    let annotation = Annotation::new(
        &named.profile,
        &filter,
        match &flags.pattern {
            Some(pattern) => Wanted::Named(pattern),
            None => Wanted::Hottest(&sources),
        },
    )?;
    let code = flags
        .asm
        .map(|syntax| annotation.code(&named.symbolizer, syntax.into()));
    let code = code.as_deref();
    let quality = ReportQuality::of(&named.profile);
    let asides = asides(&named.profile, annotation.event());
    if let Some(path) = &flags.json {
        write_file(path, |out| {
            Ok(json::annotation(&annotation, code, &sources, out)?)
        })?;
        print_closing(&asides, &quality);
    } else {
        let options = AnnotateOptions {
            width: text::terminal_width(),
            context: flags.context,
            min_percent: flags.min_percent,
            colors: colors(),
        };
        write_stdout(|out| Ok(annotate::write(&annotation, code, &sources, &options, out)?))?;
        text::write_closing(&asides, &quality)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether to colour what goes to the standard output (see <https://no-color.org>).
fn colors() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted
}
