//! The prefix of lines.

use std::time::Duration;

/// The prefix of each line.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    /// The end of an interval, as the time since the start.
    pub(super) time: Option<Duration>,
    /// The thread or CPU.
    pub(super) place: Option<String>,
}
