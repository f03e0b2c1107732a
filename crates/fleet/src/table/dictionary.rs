//! Columns of values that repeat: each distinct value once, and for each row its place among these.
//!
//! The crate `parquet` looks up each value of each row by its bytes. Here, rows that follow one
//! another and have the same value need no lookup, and the functions of stacks one for each frame.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::rows::StackHash;

/// The distinct values of a column, in the order of their first use.
pub(super) struct Dictionary<V> {
    places: FxHashMap<V, u32>,
    /// The last one: many rows that follow one another have the same.
    last: Option<(V, u32)>,
    /// The values, encoded one after the other.
    plain: Vec<u8>,
}

impl<V> Default for Dictionary<V> {
    fn default() -> Self {
        Self {
            places: FxHashMap::default(),
            last: None,
            plain: Vec::new(),
        }
    }
}

impl<V: Value> Dictionary<V> {
    /// The place of a value, which is added if it is new.
    pub(super) fn place(&mut self, value: V) -> u32 {
        if let Some((last, place)) = self.last
            && last == value
        {
            return place;
        }
        let next = self.len();
        let place = *self.places.entry(value).or_insert_with(|| {
            value.write(&mut self.plain);
            next
        });
        self.last = Some((value, place));
        place
    }

    pub(super) fn len(&self) -> u32 {
        self.places.len() as u32
    }

    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }
}

/// A value of a column.
pub(super) trait Value: Copy + Eq + Hash {
    /// Appends it in Parquet's plain encoding.
    fn write(self, to: &mut Vec<u8>);
}

impl Value for &str {
    fn write(self, to: &mut Vec<u8>) {
        to.extend((self.len() as u32).to_le_bytes());
        to.extend_from_slice(self.as_bytes());
    }
}

impl Value for StackHash {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self.bytes());
    }
}

impl Value for [u8; 16] {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self);
    }
}

impl Value for i32 {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

impl Value for i64 {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

/// The bits of a double.
impl Value for u64 {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_place() {
        let mut dictionary = Dictionary::default();
        let places = ["a", "a", "bc", "a"].map(|text| dictionary.place(text));
        assert_eq!(places, [0, 0, 1, 0]);
        assert_eq!(dictionary.plain(), b"\x01\0\0\0a\x02\0\0\0bc");
    }
}
