//! The settings of a recording that decide which remedies can help.

use serde::{Deserialize, Serialize};

/// The settings of a recording: a remedy that was in force or is impossible is not offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingSettings {
    /// How callers were found.
    pub call_graph: CallGraphSettings,
    /// Whether stacks were unwound while recording.
    pub unwound: bool,
    /// Whether a clock decides when to sample.
    pub by_clock: bool,
    /// Whether a clock is one of the events. Always if one decides when to sample.
    pub with_clock: bool,
    /// Samples per second, if there is such a rate.
    pub rate: Option<u64>,
    /// The highest rate that the kernel allows; 0 if unknown.
    pub max_rate: u64,
    /// Bytes of each CPU's ring buffer; 0 if there is none, or if unknown.
    pub ring: u64,
    /// The largest ring buffer that was possible.
    pub largest_ring: u64,
    /// Whether root recorded, which may read all memory and raise the reader's priority.
    pub root: bool,
    /// Whether prof may run before other programs (CAP_SYS_NICE).
    pub may_raise_priority: bool,
    /// Whether another program than prof recorded.
    #[serde(skip)]
    pub by_other_tool: bool,
}

impl RecordingSettings {
    /// How many samples a ring buffer should hold: on a busy machine the reader may wait 30 ms for
    /// a CPU. No sample should be lost in that time, so dumps are made smaller instead.
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
    /// In a dump of this many bytes of the stack.
    Dump(u32),
    /// By the kernel, which followed frame pointers.
    FramePointers,
    /// By the CPU, in its branch records.
    LastBranches,
}

impl CallGraphSettings {
    /// The largest dump that the kernel takes: the largest multiple of 8 that fits the 16 bits of a
    /// record's size.
    pub const LARGEST_DUMP: u32 = 65_528;
    /// Bytes of a record that dumps leave to the rest of the sample, mainly to a callchain of frame
    /// pointers.
    pub const RECORD_REST: u32 = 4096;
}
