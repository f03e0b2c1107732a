//! prof's facts about a stack besides its call chain, stored in a sample's raw bytes.

use prof_model::StackEnd;

/// How the walk up a sample's user stack went.
///
/// Recordings of prof store it in `PERF_SAMPLE_RAW`, which other readers show or skip as opaque
/// bytes; docs/format.md draws the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNote {
    /// Why it stopped.
    pub end: StackEnd,
    /// How many of the outermost frames come from memory read after the sample, from the live
    /// target.
    pub remote_read: u16,
    /// How many frames were left out of the chain because a sample cannot hold them.
    pub elided: u32,
    /// Before which user frame (the innermost is number 0) they were left out.
    pub elided_at: u32,
}

impl StackNote {
    /// Size of the raw bytes.
    pub const SIZE: usize = 12;

    const MAGIC: u8 = 0xd7;

    /// A note on a stack of which nothing is missing between its frames.
    pub const fn new(end: StackEnd) -> Self {
        Self {
            end,
            remote_read: 0,
            elided: 0,
            elided_at: 0,
        }
    }

    /// The raw bytes of the note.
    ///
    /// ```text
    ///   0      1     2             4                    8                   12
    ///   ├──────┼─────┼─────────────┼────────────────────┼────────────────────┤
    ///   │ 0xd7 │ end │ remote_read │ elided             │ elided_at          │
    /// ```
    pub fn to_raw(self) -> [u8; Self::SIZE] {
        let mut raw = [0; Self::SIZE];
        raw[0] = Self::MAGIC;
        raw[1] = self.end.code();
        raw[2..4].copy_from_slice(&self.remote_read.to_le_bytes());
        raw[4..8].copy_from_slice(&self.elided.to_le_bytes());
        raw[8..12].copy_from_slice(&self.elided_at.to_le_bytes());
        raw
    }

    /// The note in these raw bytes, or `None` if they are not a note.
    pub fn from_raw(raw: &[u8]) -> Option<Self> {
        let &[Self::MAGIC, end, r0, r1, e0, e1, e2, e3, a0, a1, a2, a3] = raw else {
            return None;
        };
        Some(Self {
            end: StackEnd::from_code(end)?,
            remote_read: u16::from_le_bytes([r0, r1]),
            elided: u32::from_le_bytes([e0, e1, e2, e3]),
            elided_at: u32::from_le_bytes([a0, a1, a2, a3]),
        })
    }
}
