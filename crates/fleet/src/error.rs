//! The errors.

use std::io;
use std::path::PathBuf;

use crate::http::HttpError;

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
        /// The cause.
        source: Box<prof_report::InputError>,
    },
    /// The names that a recording carries are damaged.
    #[error("cannot read the symbols in {}: {source}", path.display())]
    EmbeddedNames {
        /// The recording.
        path: PathBuf,
        /// The cause.
        source: prof_symbols::EmbeddedError,
    },
    /// A recording without a time of day.
    #[error(
        "{} does not say when it was recorded: give the time of its first sample (--time \
         2026-11-24T13:00:00Z)",
        path.display()
    )]
    NoTime {
        /// The recording.
        path: PathBuf,
    },
    /// Recording failed.
    #[error(transparent)]
    Recorder(#[from] prof_recorder::Error),
    /// The thread that pushes has panicked, which the standard error shows.
    #[error("pushing ended by a bug of prof (see above): recordings wait in the spool")]
    Pusher,
    /// The folder in which recordings wait.
    #[error("cannot use the spool {}: {source}", folder.display())]
    Spool {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another collector has the folder.
    #[error(
        "the spool {} is in use by another collector: name a folder of its own for each (--spool)",
        folder.display()
    )]
    SpoolInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A recording larger than the spool.
    #[error("{} is larger than the spool: raise --spool-size", path.display())]
    SpoolTooSmall {
        /// The recording.
        path: PathBuf,
    },
    /// A spool's description of a recording is damaged.
    #[error("cannot read {}: {source}", path.display())]
    Origin {
        /// The file in the spool.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A run of which there is nothing to send.
    #[error(transparent)]
    Report(#[from] prof_report::Error),
    /// A receiver that cannot be reached, or refuses.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A receiver that accepts the request, but not the profile.
    #[error("{url} rejects the profile: {message}")]
    Rejected {
        /// The receiver.
        url: String,
        /// Its message.
        message: String,
    },
    /// A data set that is not there.
    #[error("there is no data set in {url}: no such directory")]
    NoDirectory {
        /// The text as typed.
        url: String,
    },
    /// A URL that names no data set.
    #[error(
        "{} is no data set: name a directory (one with a colon as ./NAME) or s3://BUCKET/PREFIX",
        typed(url)
    )]
    NoDataSet {
        /// The text as typed.
        url: String,
    },
    /// A URL that names no destination.
    #[error(
        "{} is no destination: name a directory (one with a colon as ./NAME), \
         s3://BUCKET/PREFIX, pyroscope+http://HOST:4040 or otlp+http://HOST:4318",
        typed(url)
    )]
    NoDestination {
        /// The text as typed.
        url: String,
    },
    /// A file that cannot be written or removed.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder that cannot be listed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A variable of the environment that cannot be used.
    #[error("{variable} is {value:?}: write {expected}")]
    Setting {
        /// Its name.
        variable: String,
        /// Its value.
        value: String,
        /// A value that can be used.
        expected: &'static str,
    },
    /// A key or token in the environment that is none: it is a secret.
    #[error("{variable} {fault}: remove it")]
    Credential {
        /// The variable, or its file.
        variable: String,
        /// What is wrong with its value.
        fault: &'static str,
    },
    /// An object store that cannot be reached, or refuses.
    #[error("{path}: {source}")]
    Store {
        /// The object.
        path: String,
        /// The store's error.
        source: Box<object_store::Error>,
    },
    /// A bucket that is not there.
    #[error("the bucket {bucket} does not exist: check its name, or create it")]
    NoBucket {
        /// Its name.
        bucket: String,
    },
    /// Neither the environment nor the machine has credentials.
    #[error(
        "there are no credentials for the bucket {bucket}: set AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY"
    )]
    NoCredentials {
        /// Its name.
        bucket: String,
    },
    /// Something that answers like a store, but with other bytes.
    #[error("{path}: the answer is not a table of prof (is AWS_ENDPOINT_URL the store's address?)")]
    NoStore {
        /// The object.
        path: String,
    },
    /// A file of the data set that cannot be created.
    #[error("cannot create a table: {0}")]
    NewTable(#[from] parquet::errors::ParquetError),
    /// A file of the data set that would be larger than any that is read.
    #[error("{path} would have over 512 MiB, which prof does not read: record for a shorter time")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// A file of the data set that is none, or is damaged.
    #[error(
        "{path} is not a table of prof: {}; `prof data check` lists such files",
        reason(cause)
    )]
    Table {
        /// The file.
        path: String,
        /// The cause.
        cause: parquet::errors::ParquetError,
    },
    /// A file that went away, or became another one, while the data set was read.
    #[error("{path} was removed or replaced meanwhile, perhaps by `prof data compact`: try again")]
    Changed {
        /// The file.
        path: String,
    },
    /// A folder of a bucket with more files than are listed.
    #[error(
        "{path} has over {most} files, which prof does not list: `prof data compact` makes few \
         of them while there are fewer (is AWS_ENDPOINT_URL the store's address?)"
    )]
    TooManyFiles {
        /// The folder.
        path: String,
        /// The most files.
        most: usize,
    },
    /// A file that has two paths in the data set.
    #[error("{paths}: remove one of them; its folder is not compacted")]
    Alias {
        /// Both, as a sentence.
        paths: String,
    },
    /// More data than one machine should hold.
    #[error(
        "over {most} distinct stacks, recordings or functions, or a gigabyte of names: choose a \
         shorter time or one service, or use one of the engines of docs/fleet.md"
    )]
    TooMuch {
        /// The most stacks, recordings or functions.
        most: usize,
    },
}

/// A text as typed, of which an empty one must be seen as well.
fn typed(text: &str) -> &str {
    match text {
        "" => "an empty URL",
        text => text,
    }
}

/// Why a file cannot be read as a table: our own reason without the name of the library.
pub(crate) fn reason(error: &parquet::errors::ParquetError) -> String {
    match error {
        parquet::errors::ParquetError::General(reason) => reason.clone(),
        other => other.to_string(),
    }
}

impl Error {
    /// A file that cannot be read as a table.
    pub(crate) fn table(path: &str, cause: parquet::errors::ParquetError) -> Self {
        Self::Table {
            path: path.to_owned(),
            cause,
        }
    }

    /// Whether the recording is to blame, so that it is of no use to try again.
    pub(crate) fn is_of_recording(&self) -> bool {
        match self {
            Self::Input { .. } | Self::EmbeddedNames { .. } | Self::NoTime { .. } => true,
            Self::Rejected { .. } | Self::Origin { .. } | Self::TooLarge { .. } => true,
            Self::Http(error) => error.is_of_body(),
            _ => false,
        }
    }

    /// Whether a receiver did not answer, whatever the recording.
    pub(crate) fn is_of_connection(&self) -> bool {
        match self {
            Self::Http(HttpError::Unreachable { .. }) => true,
            // Answers, even refusals, are other errors.
            Self::Store { source, .. } => has_cause::<object_store::client::HttpError>(source),
            _ => false,
        }
    }
}

/// Whether an error has a cause of this type.
pub(crate) fn has_cause<E: std::error::Error + 'static>(error: &object_store::Error) -> bool {
    let first: &dyn std::error::Error = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.any(|cause| cause.is::<E>())
}
