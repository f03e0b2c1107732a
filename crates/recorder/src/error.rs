//! Why a recording could not be made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a recording could not be made. The messages are for people: what failed, why, what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command was not found: shells exit 127.
    #[error("{command}: command not found")]
    CommandNotFound {
        /// The command as given.
        command: String,
    },
    /// The command cannot be executed: shells exit 126.
    #[error("{command}: cannot be started: {source}")]
    CommandNotStarted {
        /// The command as given.
        command: String,
        /// What `exec` or `fork` answered.
        source: io::Error,
    },
    /// The output cannot be created or written.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A signal came before recording began.
    #[error("interrupted before recording began")]
    Interrupted,
}
