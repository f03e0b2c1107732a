//! `prof archive`: embeds symbols in a recording.

use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_console::say;
use prof_model::counted;
use prof_report::recording_file;

use crate::flags::ArchiveFlags;
use crate::symbolization;

/// Embeds symbols in a recording and reports how many.
///
/// # Errors
///
/// The recording cannot be read or written; it is then unchanged.
pub(crate) fn run(flags: &ArchiveFlags) -> Result<ExitCode> {
    let input = recording_file(&flags.input)
        .with_context(|| format!("cannot read {}", flags.input.display()))?;
    let output = flags.output.as_ref().unwrap_or(&input);
    let naming = symbolization::embed(&input, output, &flags.symbols)?;
    symbolization::unnamed(&naming).iter().for_each(say);
    let total: usize = naming.iter().map(|module| module.addresses).sum();
    let named: usize = naming.iter().map(|module| module.named).sum();
    say(&format_args!(
        "wrote {}: {named} of {total} addresses in {} have symbols",
        output.display(),
        counted(naming.len() as u64, "module"),
    ));
    Ok(ExitCode::SUCCESS)
}
