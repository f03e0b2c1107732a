//! The heaps that hold code. For each segment of a heap, a byte in its segment map says how many
//! segments further down its block begins, or gives a part of that distance.
//!
//! ```text
//!   segments      │ block            │ block │ free │
//!   segment map     0 1 2 3 ... 3 3    0 1     255
//! ```

use std::ops::Range;

use super::layout::HotspotLayout;
use crate::Memory;
use crate::read::word;

/// A heap of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeHeap {
    pub(super) memory: Range<u64>,
    /// Its segment map.
    map: Range<u64>,
    segment_log2: u32,
}

/// Why the code at an address is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The memory cannot be read: mostly, the process has ended.
    Unreadable,
    /// There is no code, or the structures are inconsistent.
    NoCode,
}

impl CodeHeap {
    /// The most heaps; HotSpot has three.
    const HEAPS: u64 = 16;
    /// The byte of a segment that is in no block.
    const FREE: u8 = 0xff;
    /// Steps down to the start of a block, at most: each goes over up to 254 segments of, by
    /// default, 64 or 128 bytes.
    const HOPS: usize = 4096;
    /// How many bytes of a segment map are read at once.
    const WINDOW: u64 = 256;

    /// The current heaps.
    pub(super) fn all(layout: &HotspotLayout, memory: &mut impl Memory) -> Option<Vec<Self>> {
        let array = word(memory, layout.heaps)?;
        let length = word(memory, array.checked_add(layout.array_length.into())?)? & 0xffff_ffff;
        let data = word(memory, array.checked_add(layout.array_data.into())?)?;
        let heaps = 0..length.min(Self::HEAPS);
        heaps
            .map(|index| {
                let heap = word(memory, data.checked_add(index * 8)?)?;
                Self::read(layout, memory, heap)
            })
            .collect()
    }

    fn read(layout: &HotspotLayout, memory: &mut impl Memory, heap: u64) -> Option<Self> {
        let layout = &layout.heap;
        let mut field = |offset: u16| word(memory, heap.checked_add(offset.into())?);
        let found = Self {
            memory: field(layout.memory_low)?..field(layout.memory_high)?,
            map: field(layout.map_low)?..field(layout.map_high)?,
            segment_log2: u32::try_from(field(layout.segment_log2)? & 0xffff_ffff).ok()?,
        };
        ((4..=16).contains(&found.segment_log2)).then_some(found)
    }

    /// The code blob in the block that holds an address of this heap, and where the block ends.
    pub(super) fn blob(
        &self,
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        address: u64,
    ) -> Result<Range<u64>, Unknown> {
        let offset = address.checked_sub(self.memory.start);
        let segment = offset.ok_or(Unknown::NoCode)? >> self.segment_log2;
        let first = self.first_segment(memory, segment)?;
        let start = (self.memory.start).saturating_add(first << self.segment_log2);
        let header = &layout.heap;
        let mut field = |offset: u16| {
            let at = (start.checked_add(offset.into())).ok_or(Unknown::NoCode)?;
            word(memory, at).ok_or(Unknown::Unreadable)
        };
        let segments = header.block_length.of(field(header.block_length.offset)?);
        let is_used = field(header.block_used)? & 0xff;
        let end = (segments.checked_shl(self.segment_log2)).and_then(|it| start.checked_add(it));
        let blob = start.saturating_add(header.block_header.into())..end.ok_or(Unknown::NoCode)?;
        let fits = is_used == 1 && blob.contains(&address) && blob.end <= self.memory.end;
        fits.then_some(blob).ok_or(Unknown::NoCode)
    }

    /// The first segment of the block that contains this one.
    fn first_segment(&self, memory: &mut impl Memory, segment: u64) -> Result<u64, Unknown> {
        let mut window = [0; Self::WINDOW as usize];
        let (mut first, mut count) = (0, 0);
        let mut at = segment;
        for _ in 0..Self::HOPS {
            if count == 0 || at < first {
                first = at.saturating_sub(Self::WINDOW - 1);
                let start = (self.map.start.checked_add(first)).ok_or(Unknown::NoCode)?;
                let wanted = (at - first + 1) as usize;
                if start.saturating_add(wanted as u64) > self.map.end {
                    return Err(Unknown::NoCode);
                }
                let bytes = window.get_mut(..wanted).ok_or(Unknown::NoCode)?;
                count = memory.read(start, bytes).min(wanted);
                if count < wanted {
                    return Err(Unknown::Unreadable);
                }
            }
            let byte = window.get((at - first) as usize).copied();
            match byte.unwrap_or(Self::FREE) {
                0 => return Ok(at),
                Self::FREE => return Err(Unknown::NoCode),
                down => at = at.checked_sub(down.into()).ok_or(Unknown::NoCode)?,
            }
        }
        Err(Unknown::NoCode)
    }
}
