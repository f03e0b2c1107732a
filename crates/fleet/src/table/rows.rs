//! Rows as values.

use std::fmt;
use std::sync::Arc;

use crate::run::{Labels, RunId};

/// A stack's number, the same on every machine: of the outermost frame alone, the first 16 bytes
/// of the SHA-256 of that frame; of a longer stack, those of the SHA-256 of its callers' number
/// and the innermost frame ([`crate::dataset`]). The first byte is the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StackHash(pub(crate) u128);

impl StackHash {
    /// The number with these bytes.
    pub(crate) fn of_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Its bytes.
    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for StackHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The samples of ten seconds that have all else in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SampleRow<Text = Arc<str>> {
    /// When the ten seconds begin, in µs since 1970.
    pub(crate) time: i64,
    pub(crate) event: Text,
    pub(crate) unit: Text,
    pub(crate) pid: i32,
    /// The name of the process, and that of the thread.
    pub(crate) comm: Text,
    pub(crate) thread: Text,
    pub(crate) stack: StackHash,
    /// Sum of the weights, in the unit.
    pub(crate) weight: i64,
    /// How many samples.
    pub(crate) count: i64,
    pub(crate) stack_end: Text,
    pub(crate) run: RunId,
    pub(crate) labels: Arc<Labels>,
}

/// A stack and its frames, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackRow {
    pub(crate) stack: StackHash,
    /// How many frames have symbols. Of two rows of one stack, the one with more is better.
    pub(crate) named: i32,
    /// Stacks share their frames, where it is known that these are the same.
    pub(crate) frames: Vec<Arc<Frame>>,
}

/// A function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Frame {
    /// Its name; `module+0xoffset` if it has no symbol.
    pub(crate) function: Arc<str>,
    /// The short name of the file it is in, `[kernel]`, `[jit]` or empty.
    pub(crate) module: Arc<str>,
    /// `user`, `kernel`, `jit`, `python`, `missing`.
    pub(crate) kind: Arc<str>,
    /// Whether it is inlined into the frame before it.
    pub(crate) inlined: bool,
    /// In hexadecimal digits.
    pub(crate) build_id: Option<Arc<str>>,
    /// The offset in the file; of the kernel, from its `_text`.
    pub(crate) address: Option<i64>,
    /// Source file and line.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: Option<i32>,
}

/// A recording as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    /// Of the first and the last sample, in µs since 1970.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The sum of `count` of all its rows.
    pub(crate) samples: i64,
    pub(crate) lost: i64,
    /// The share of what threads did that samples stand for, if known.
    pub(crate) coverage: Option<f64>,
    /// `good`, ...; and why.
    pub(crate) verdict: String,
    pub(crate) reasons: String,
    pub(crate) kernel: Option<String>,
    pub(crate) arch: Option<String>,
    /// What recorded it.
    pub(crate) command: String,
    /// Samples per second asked for, if it was a rate.
    pub(crate) rate: Option<i64>,
    /// Of prof, which pushed it.
    pub(crate) version: String,
    pub(crate) labels: Labels,
}
