//! The bytes of a [`StackNote`]: prof's facts about a stack besides its call chain.
//!
//! Recordings of prof store it in `PERF_SAMPLE_RAW`, which other readers show or skip as opaque
//! bytes; docs/format.md draws them:
//!
//! ```text
//!   0      1     2             4                    8                   12
//!   ├──────┼─────┼─────────────┼────────────────────┼────────────────────┤
//!   │ 0xd7 │ end │ remote_read │ elided             │ elided_at          │
//! ```

use prof_model::{StackEnd, StackNote};

const SIZE: usize = 12;
const MAGIC: u8 = 0xd7;

/// The raw bytes of a sample with this note.
pub fn stack_note(note: StackNote) -> [u8; SIZE] {
    let mut raw = [0; SIZE];
    raw[0] = MAGIC;
    raw[1] = note.end.code();
    raw[2..4].copy_from_slice(&note.remote_read.to_le_bytes());
    raw[4..8].copy_from_slice(&note.elided.to_le_bytes());
    raw[8..12].copy_from_slice(&note.elided_at.to_le_bytes());
    raw
}

/// The note in these raw bytes, or `None` if they are not a note.
pub(crate) fn parse(raw: &[u8]) -> Option<StackNote> {
    let &[MAGIC, end, r0, r1, e0, e1, e2, e3, a0, a1, a2, a3] = raw else {
        return None;
    };
    Some(StackNote {
        remote_read: u16::from_le_bytes([r0, r1]),
        elided: u32::from_le_bytes([e0, e1, e2, e3]),
        elided_at: u32::from_le_bytes([a0, a1, a2, a3]),
        ..StackNote::new(StackEnd::from_code(end)?)
    })
}
