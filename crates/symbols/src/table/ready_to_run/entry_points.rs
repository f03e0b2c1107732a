//! The tables of entry points: which runtime function a method begins with.

use super::signature::{MethodToken, method};
use crate::bytes::Cursor;

/// The number of a runtime function, and the method that begins with it, if the file names it.
type EntryPoint = (u32, Option<MethodToken>);

/// The most entries of a table.
const MOST: u32 = 1 << 22;
/// The most bytes of an entry.
const LONGEST: usize = 4096;

/// The methods of the table at this place.
pub(super) fn methods(table: Cursor<'_>) -> Vec<EntryPoint> {
    let Some(array) = SparseArray::parse(table) else {
        return Vec::new();
    };
    let entry = |index: u32| {
        let function = function_number(&mut array.find(index)?)?;
        Some((function, Some(MethodToken::defined(index + 1))))
    };
    (0..array.length).filter_map(entry).collect()
}

/// The instances of generic methods, and of methods of generic types, of the table at this place,
/// at most so many. `None`: they cannot be read.
pub(super) fn instances(table: Cursor<'_>, most: usize) -> Option<Vec<EntryPoint>> {
    let mut entries = Vec::new();
    for_each_entry(table, |mut entry| {
        // Buckets of a damaged table may overlap.
        (entries.len() < most).then_some(())?;
        let method = method(&mut entry)?;
        entries.push((function_number(&mut entry)?, method));
        Some(())
    })?;
    Some(entries)
}

/// The number of a runtime function, before which flags tell of fixups.
fn function_number(entry: &mut Cursor<'_>) -> Option<u32> {
    let number = entry.unsigned()?;
    match number & 1 {
        0 => Some(number >> 1),
        _ => Some(number >> 2),
    }
}

/// An array with gaps: blocks of 16 elements, each a tree whose inner nodes say what there is of
/// either half.
struct SparseArray<'data> {
    /// Where the places of blocks are.
    blocks: Cursor<'data>,
    length: u32,
    /// The size of a block's place, as a power of two.
    width: u32,
}

impl<'data> SparseArray<'data> {
    const BLOCK: u32 = 16;

    fn parse(mut at: Cursor<'data>) -> Option<Self> {
        let header = at.unsigned()?;
        Some(Self {
            length: (header >> 2).min(MOST),
            width: header & 3,
            blocks: at,
        })
    }

    fn find(&self, index: u32) -> Option<Cursor<'data>> {
        let Cursor { bytes, at } = self.blocks;
        let block = at.checked_add(((index / Self::BLOCK) as usize) << self.width.min(2))?;
        let place = match self.width {
            0 => u32::from(bytes.u8(block)?),
            1 => u32::from(bytes.u16(block)?),
            _ => bytes.u32(block)?,
        };
        let mut at = at.checked_add(place as usize)?;
        let mut bit = Self::BLOCK >> 1;
        while bit > 0 {
            let mut node = Cursor { bytes, at };
            let halves = node.unsigned()?;
            at = match (index & bit != 0, halves & 0b11) {
                (true, 0b10 | 0b11) => at.checked_add((halves >> 2) as usize)?,
                (false, 0b01 | 0b11) => node.at,
                // The only element.
                (_, 0b00) if halves >> 2 == index % Self::BLOCK => return Some(node),
                _ => return None,
            };
            bit >>= 1;
        }
        Some(Cursor { bytes, at })
    }
}

/// Calls `each` with the entries of a hash table. `None`: an entry cannot be read.
fn for_each_entry<'data>(
    mut table: Cursor<'data>,
    mut each: impl FnMut(Cursor<'data>) -> Option<()>,
) -> Option<()> {
    let header = table.byte()?;
    let buckets = 1_u32
        .checked_shl(u32::from(header >> 2))
        .filter(|&it| it <= MOST)?;
    let Cursor { bytes, at: base } = table;
    let width = u32::from(header & 3).min(2);
    let place = |bucket: u32| {
        let at = base.checked_add((bucket as usize) << width)?;
        let place = match width {
            0 => u32::from(bytes.u8(at)?),
            1 => u32::from(bytes.u16(at)?),
            _ => bytes.u32(at)?,
        };
        base.checked_add(place as usize)
    };
    for bucket in 0..buckets {
        let mut next = Cursor {
            bytes,
            at: place(bucket)?,
        };
        let end = place(bucket + 1)?;
        while next.at < end {
            // The low byte of the hash value comes first.
            next.byte()?;
            let at = next.at.checked_add_signed(next.signed()? as isize)?;
            let bytes = bytes.from(at)?.up_to(LONGEST);
            each(Cursor { bytes, at: 0 })?;
        }
    }
    Some(())
}
