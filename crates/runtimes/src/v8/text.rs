//! Strings.

use super::layout::Layout;
use super::object::{Object, instance_type, object_at, small_integer};
use crate::Memory;
use crate::read::{word, word_at};

/// The characters of a string, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Characters {
    address: u64,
    /// How many there are.
    pub(super) length: usize,
    /// Whether each has one byte (Latin-1), not two (UTF-16).
    is_one_byte: bool,
}

/// How a string stores its characters, in the lowest bits of its type.
const REPRESENTATION: u16 = 0b111;
const SEQUENTIAL: u16 = 0;
const CONCATENATED: u16 = 1;
const EXTERNAL: u16 = 2;
const SLICED: u16 = 3;
const THIN: u16 = 5;
const ONE_BYTE: u16 = 1 << 3;
/// Of external strings: their characters may move.
const UNCACHED: u16 = 1 << 4;

/// A string's type and the beginning of it.
struct Header {
    kind: u16,
    length: usize,
    bytes: [u8; 32],
}

impl Header {
    fn read(layout: &Layout, memory: &mut impl Memory, string: Object) -> Option<Self> {
        let mut bytes = [0; 32];
        // An empty string is shorter, and may be at the end of a page.
        let count = memory.read(string.at(0), &mut bytes);
        (count >= 16).then_some(())?;
        let kind = instance_type(layout, memory, object_at(&bytes, 0)?)?;
        (kind < layout.types.first_not_string).then_some(())?;
        let at = usize::try_from(layout.string.length).ok()?;
        let length = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some(Self {
            kind,
            length: length as usize,
            bytes,
        })
    }

    fn word(&self, offset: u64) -> Option<u64> {
        word_at(&self.bytes, u16::try_from(offset).ok()?)
    }
}

/// How deep strings of strings are followed.
const DEPTH: u32 = 8;

/// The characters of a string that has all of them in one place.
pub(super) fn characters(
    layout: &Layout,
    memory: &mut impl Memory,
    string: Object,
) -> Option<Characters> {
    let (mut string, mut skipped, mut length) = (string, 0_u64, None);
    for _ in 0..DEPTH {
        let header = Header::read(layout, memory, string)?;
        let is_one_byte = header.kind & ONE_BYTE != 0;
        let wanted = *length.get_or_insert(header.length);
        let flat = |start: u64| Characters {
            address: start.wrapping_add(skipped << u32::from(!is_one_byte)),
            length: wanted,
            is_one_byte,
        };
        match header.kind & REPRESENTATION {
            SEQUENTIAL => return Some(flat(string.at(layout.string.characters))),
            EXTERNAL if header.kind & UNCACHED == 0 => {
                let data = layout.string.resource + 8;
                return Some(flat(header.word(data)?));
            }
            SLICED => {
                let (parent, offset) = layout.string.slice;
                let offset = small_integer(word(memory, string.at(offset))?)?;
                skipped = skipped.checked_add(u64::try_from(offset).ok()?)?;
                string = string.object(memory, parent)?;
            }
            THIN => string = string.object(memory, layout.string.actual)?,
            // V8 has moved the characters of all parts to the first.
            CONCATENATED => {
                let (first, second) = layout.string.parts;
                let second = string.object(memory, second)?;
                let rest = Header::read(layout, memory, second)?.length;
                (rest == 0).then_some(())?;
                string = string.object(memory, first)?;
            }
            _ => return None,
        }
    }
    None
}

/// A string as it is shown in a line: at most so many characters of it.
pub(super) fn text(
    layout: &Layout,
    memory: &mut impl Memory,
    string: Object,
    most: usize,
) -> Option<String> {
    let mut text = String::new();
    append(layout, memory, (string, DEPTH), most, &mut text)?;
    Some(text.replace(char::is_control, " "))
}

/// Adds a string, whose parts are followed so deep, to `text`.
fn append(
    layout: &Layout,
    memory: &mut impl Memory,
    (string, depth): (Object, u32),
    most: usize,
    text: &mut String,
) -> Option<()> {
    if let Some(characters) = characters(layout, memory, string) {
        let mut units = Vec::new();
        characters.read(memory, most, &mut units)?;
        text.push_str(&String::from_utf16_lossy(&units));
        return Some(());
    }
    let depth = depth.checked_sub(1)?;
    let header = Header::read(layout, memory, string)?;
    (header.kind & REPRESENTATION == CONCATENATED).then_some(())?;
    let (first, second) = layout.string.parts;
    for part in [first, second] {
        let left = most.saturating_sub(text.len());
        if left > 0 {
            let part = string.object(memory, part)?;
            append(layout, memory, (part, depth), left, text)?;
        }
    }
    Some(())
}

impl Characters {
    /// Appends the characters, at most so many, to `units`, in UTF-16.
    pub(super) fn read(
        &self,
        memory: &mut impl Memory,
        most: usize,
        units: &mut Vec<u16>,
    ) -> Option<()> {
        let length = self.length.min(most);
        let mut bytes = vec![0; length << u32::from(!self.is_one_byte)];
        let count = memory.read(self.address, &mut bytes);
        (count == bytes.len()).then_some(())?;
        match self.is_one_byte {
            true => units.extend(bytes.iter().copied().map(u16::from)),
            false => {
                let (pairs, _) = bytes.as_chunks();
                units.extend(pairs.iter().copied().map(u16::from_le_bytes));
            }
        }
        Some(())
    }
}
