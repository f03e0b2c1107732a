//! What can go wrong with a file of /proc.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a file of /proc cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The task has ended (`NotFound`, or ESRCH), /proc is not mounted, or it may not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file is not as proc(5) describes it.
    #[error("{} is not as proc(5) describes it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Read { source, .. } => source.kind(),
            Error::Malformed { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
