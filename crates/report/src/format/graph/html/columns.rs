//! Consecutive columns of numbers.

use std::collections::BTreeMap;

/// Columns as the page reads them: unsigned LEB128 numbers (DWARF 5, section 7.6).
#[derive(Debug, Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
    /// By name: the offset of the first byte, and how many numbers there are.
    places: BTreeMap<&'static str, (usize, usize)>,
}

impl Columns {
    /// Adds a column.
    pub(super) fn add<N: Into<u64>>(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = N>,
    ) {
        let start = self.bytes.len();
        let mut count = 0;
        for number in numbers {
            self.push(number.into());
            count += 1;
        }
        self.places.insert(name, (start, count));
    }

    fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// The bytes of all columns, and where each of them is, counted from `base`.
    pub(super) fn finish(self, base: usize) -> (Vec<u8>, BTreeMap<&'static str, (usize, usize)>) {
        let mut places = self.places;
        for (start, _) in places.values_mut() {
            *start += base;
        }
        (self.bytes, places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size() {
        let mut columns = Columns::default();
        columns.add("small", [0_u8, 127]);
        columns.add("large", [128_u64, 1 << 40]);
        let (bytes, places) = columns.finish(10);
        assert_eq!(bytes, [0, 127, 0x80, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
        assert_eq!(places["small"], (10, 2));
        assert_eq!(places["large"], (12, 2));
    }
}
