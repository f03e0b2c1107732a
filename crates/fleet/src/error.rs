//! What can go wrong.

use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A recording that cannot be had at all.
    #[error(transparent)]
    File(#[from] prof_filemap::Error),
    /// A file that is no recording, or a damaged one.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<prof_report::InputError>,
    },
    /// The names that a recording carries are damaged.
    #[error("cannot read the names in {}: {source}", path.display())]
    EmbeddedNames {
        /// The recording.
        path: PathBuf,
        /// What is wrong with them.
        source: prof_symbols::EmbeddedError,
    },
    /// A recording that does not say when it was made.
    #[error(
        "{} does not say when it was made: name the time of its first sample (--time \
         2026-11-24T13:00:00Z)",
        path.display()
    )]
    NoTime {
        /// The recording.
        path: PathBuf,
    },
    /// A URL that names no destination.
    #[error("{url} is no destination: name a directory")]
    NoDestination {
        /// What was typed.
        url: String,
    },
}
