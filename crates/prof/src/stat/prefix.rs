//! What goes before lines.

use std::time::Duration;

/// What goes before each line.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    /// The time of an interval's end since the begin.
    pub(super) time: Option<Duration>,
    /// The thread or CPU.
    pub(super) place: Option<String>,
}
