//! Tagged words, and the types of objects.

use super::layout::Layout;
use crate::Memory;
use crate::read::{word, word_at};

/// An object on V8's heap, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object(u64);

impl Object {
    /// The two lowest bits of a pointer to an object, which weak pointers and numbers lack.
    const TAG: u64 = 0b01;
    const TAG_MASK: u64 = 0b11;

    /// The object that a word points to; `None` if it is a number.
    pub(super) fn tagged(word: u64) -> Option<Self> {
        (word & Self::TAG_MASK == Self::TAG).then(|| Self(word - Self::TAG))
    }

    /// The address of what is at this offset.
    pub(super) fn at(self, offset: u64) -> u64 {
        self.0.wrapping_add(offset)
    }

    /// The object in the field at this offset.
    pub(super) fn object(self, memory: &mut impl Memory, offset: u64) -> Option<Self> {
        Self::tagged(word(memory, self.at(offset))?)
    }

    /// Its type: a number of V8's.
    pub(super) fn instance_type(self, layout: &Layout, memory: &mut impl Memory) -> Option<u16> {
        let map = self.object(memory, 0)?;
        instance_type(layout, memory, map)
    }
}

/// The type in a `Map`.
pub(super) fn instance_type(layout: &Layout, memory: &mut impl Memory, map: Object) -> Option<u16> {
    let mut bytes = [0; 2];
    let count = memory.read(map.at(layout.instance_type), &mut bytes);
    (count == bytes.len()).then(|| u16::from_le_bytes(bytes))
}

/// The small integer in a word: its upper half.
pub(super) fn small_integer(word: u64) -> Option<i32> {
    (word as u32 == 0).then_some((word >> 32) as u32 as i32)
}

/// The object in the field at this offset of these bytes.
pub(super) fn object_at(bytes: &[u8], offset: u64) -> Option<Object> {
    Object::tagged(word_at(bytes, u16::try_from(offset).ok()?)?)
}
