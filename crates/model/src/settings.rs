//! How a recording was made, as far as it decides what would make it better.

use serde::{Deserialize, Serialize};

/// How a recording was made: no remedy is offered that was in force already, or could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingSettings {
    /// How callers were found.
    pub call_graph: CallGraphSettings,
    /// Whether stacks were unwound while recording.
    pub unwound: bool,
    /// Whether a clock says when to sample.
    pub by_clock: bool,
    /// Samples per second, if there is such a rate.
    pub rate: Option<u64>,
    /// The highest rate that could be asked for; 0 if it is not known.
    pub max_rate: u64,
    /// Bytes of each CPU's ring buffer; 0 if there is none, or if it is not known.
    pub ring: u64,
    /// The most that these could have.
    pub largest_ring: u64,
    /// Whether root recorded, who may read all memory and run before others.
    pub root: bool,
}

impl RecordingSettings {
    /// How many samples a ring buffer should hold: on a busy machine the reader may have to wait
    /// 30 ms for a CPU. Samples must not be lost for that, so copies of stacks are smaller instead.
    pub fn samples_to_hold(rate: u64) -> u64 {
        const READER_AWAY_MS: u64 = 30;
        const FEWEST: u64 = 8;
        (rate.saturating_mul(READER_AWAY_MS) / 1000).max(FEWEST)
    }
}

/// How callers were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallGraphSettings {
    /// Not at all.
    #[default]
    None,
    /// In a copy of so many bytes of the stack.
    Dump(u32),
    /// By the kernel, which followed frame pointers.
    FramePointers,
    /// By the CPU, in its branch records.
    LastBranches,
}

impl CallGraphSettings {
    /// The most that the kernel copies: the largest multiple of 8 that fits the 16 bits of a
    /// record's size.
    pub const LARGEST_DUMP: u32 = 65_528;
    /// Bytes of a record that copies leave to the rest of the sample, a chain of frame pointers
    /// above all.
    pub const RECORD_REST: u32 = 4096;
}
