//! One page for any browser, that loads nothing: timeline, flamegraphs, tables, source, difference.
//!
//! ```text
//!   page.html (web/, bundled) + payload: | length | head (JSON) | columns (LEB128) | gzip, base64
//! ```
//! The page computes each view from the samples, so that a selection of time and threads filters
//! all of them; `crates/report/web` has its source.

mod columns;
mod head;
mod payload;
mod start;

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::check_samples;
use crate::source::Sources;
use crate::symbolize::SymbolizedProfile;
use crate::view::annotate::CodeListing;

/// The page, with a placeholder for the data.
const PAGE: &str = include_str!("../../../../web/dist/page.html");
const MARK: &str = "{{DATA}}";

/// A recording as the page shows it.
pub struct HtmlInput<'a> {
    /// Its samples, with names.
    pub profile: &'a SymbolizedProfile,
    /// The instructions of its hottest functions; may be empty.
    pub code: Vec<CodeListing>,
}

/// Writes a page of one recording, or of two to compare: before and after. It holds all samples,
/// and starts with those that pass `filter`.
///
/// # Errors
/// [`Error::NoSamples`] if a recording has none, [`Error::NoSuchEvent`], [`Error::Lacking`];
/// [`Error::Write`].
pub fn write(
    title: &str,
    inputs: &[HtmlInput<'_>],
    filter: &Filter,
    sources: &Sources,
    mut out: impl Write,
) -> Result<(), Error> {
    inputs
        .iter()
        .try_for_each(|input| check_samples(input.profile))?;
    let (before, after) = PAGE.split_once(MARK).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    let mut packed = GzEncoder::new(EncoderWriter::new(&mut out, &STANDARD), Compression::new(7));
    payload::write(title, inputs, filter, sources, &mut packed)?;
    packed.finish()?.finish()?;
    out.write_all(after.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests;
