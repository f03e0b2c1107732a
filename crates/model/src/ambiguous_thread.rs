//! Threads whose callers the kernel's copy of the stack does not tell.

use serde::{Deserialize, Serialize};

use crate::process::Tid;

/// A thread that comes back to the same function at the same depth by other callers. What was read
/// beyond the kernel's copies of its stack may be of another moment, until the recorder knows this
/// and takes only what it reads in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmbiguousThread {
    /// Its id.
    pub tid: Tid,
    /// The time of the first sample that is in doubt, in the recording's clock.
    pub from: u64,
    /// The time of the sample that showed it, which is not in doubt.
    pub to: u64,
}
