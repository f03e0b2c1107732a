//! Adds a feature to a recording that is finished.

use std::io::{self, Write};

use crate::error::Error;
use crate::features::feature;
use crate::recording::FileParts;

/// Why symbols can't be added to a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// It is not a recording.
    #[error(transparent)]
    Recording(#[from] Error),
    /// It has no features to add one to.
    #[error(
        "it is in pipe form (perf record -o -), or was cut off: only complete recordings in files \
         can take symbols"
    )]
    NotAFile,
    /// The copy can't be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a copy of the recording `file` that carries `symbols`
/// ([`Features::symbols`](crate::Features::symbols)), in place of those that it may have.
///
/// ```text
///   header │ ids, attributes │ records │ table     │ features ...            before
///   header │ ids, attributes │ records │ table + 1 │ features ... symbols    after
///      └─ one more bit       └─ the same bytes
/// ```
/// All other features are copied unchanged, even unknown ones: perf's do not depend on their
/// position.
///
/// # Errors
/// `file` is no whole recording in file form, or `out` cannot be written to.
pub fn write_with_symbols(
    file: &[u8],
    symbols: &[u8],
    out: &mut dyn Write,
) -> Result<(), RewriteError> {
    /// `sizeof(struct perf_file_section)`
    const SECTION: usize = 16;
    let parts = FileParts::read(file)?.ok_or(RewriteError::NotAFile)?;
    let mut features: Vec<(u64, &[u8])> = parts.features_without_symbols().collect();
    features.push((feature::SYMBOLS, symbols));
    features.sort_by_key(|&(number, _)| number);

    let mut bits = [0_u8; 32];
    let mut table = Vec::new();
    let records_end = parts.before_bits.len() + bits.len() + parts.after_bits.len();
    let mut offset = (records_end + SECTION * features.len()) as u64;
    for &(number, content) in &features {
        bits[(number / 8) as usize] |= 1 << (number % 8);
        let section = [offset, content.len() as u64];
        table.extend(section.map(u64::to_le_bytes).concat());
        offset += content.len() as u64;
    }
    for part in [parts.before_bits, &bits, parts.after_bits, &table] {
        out.write_all(part)?;
    }
    for (_, content) in features {
        out.write_all(content)?;
    }
    Ok(())
}

/// The parts of the recording `file` that [`write_with_symbols`] leaves unchanged: a recording has
/// the same ones with and without symbols. The whole of it, if it can take no symbols.
///
/// # Errors
/// `file` is no recording.
pub fn parts_without_symbols(file: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let Some(parts) = FileParts::read(file)? else {
        return Ok(vec![file]);
    };
    let features = parts.features_without_symbols();
    let features = features.map(|(_, content)| content);
    let records = [parts.before_bits, parts.after_bits];
    Ok(records.into_iter().chain(features).collect())
}
