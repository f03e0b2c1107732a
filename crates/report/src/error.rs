//! What can go wrong.

use std::io;

use crate::filter::InvalidPattern;
use crate::suggest::did_you_mean;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording can't be read on.
    #[error(transparent)]
    Recording(#[from] prof_perfdata::Error),
    /// Nothing is left to show.
    #[error("no samples to show: {0}")]
    NoSamples(NoSamples),
    /// The recording has no such event.
    #[error("the recording has no event {asked}; it has {}", known.join(", "))]
    NoSuchEvent {
        /// The event asked for.
        asked: String,
        /// The events of the recording.
        known: Vec<String>,
    },
    /// No function on any stack matches.
    #[error(
        "no function on the stacks shown matches {pattern}{}",
        did_you_mean(similar)
    )]
    NoSuchFunction {
        /// What was looked for.
        pattern: String,
        /// Names of functions that may have been meant, the likeliest first.
        similar: Vec<String>,
    },
    /// What was to name functions is no regular expression.
    #[error(transparent)]
    InvalidPattern(#[from] InvalidPattern),
    /// Two recordings that can't be compared.
    #[error("{before} and {after} count different things; compare recordings of one event")]
    DifferentUnits {
        /// The event of the first recording.
        before: String,
        /// The event of the second one.
        after: String,
    },
    /// The report can't be written.
    #[error("cannot write the report")]
    Write(#[from] io::Error),
}

/// Why there are no samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSamples {
    /// There are none in the recording.
    #[error(
        "the recording holds none; the target used too little CPU time for its rate (raise it \
         with -F), or sampling did not work"
    )]
    Recorded,
    /// The filters leave none.
    #[error("the filters leave none of the recording's")]
    Left,
}
