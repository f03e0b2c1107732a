//! Numbers that change along the code of a function: its file, its line, the inlined call.
//!
//! Pairs of variable length: how much the number changes, and for how many instructions it stays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Bytes;

/// The tables of all functions.
pub(super) struct Values<'data> {
    bytes: Bytes<'data>,
    quantum: u32,
    /// How many pairs may still be read: the tables of a damaged file may have any length.
    left: AtomicU64,
}

impl<'data> Values<'data> {
    /// The most pairs of a function, and of all that is looked up: about a second.
    const MOST: u64 = 1 << 20;
    const MOST_IN_ALL: u64 = 1 << 28;

    pub(super) fn new(bytes: Bytes<'data>, quantum: u8) -> Self {
        Self {
            bytes,
            quantum: quantum.into(),
            left: AtomicU64::new(Self::MOST_IN_ALL),
        }
    }

    /// The number at a distance from the function's start, by the table at this offset; `None` if
    /// there is none.
    pub(super) fn at(&self, table: u32, distance: u64) -> Option<i32> {
        // No table.
        (table > 0).then_some(())?;
        let mut at = usize::try_from(table).ok()?;
        let most = self.left.load(Relaxed).min(Self::MOST);
        let (mut value, mut end) = (-1_i32, 0_u64);
        for pair in 0..most {
            let change = self.varint(&mut at)?;
            if change == 0 && pair > 0 {
                self.spend(pair);
                return None;
            }
            let sign = -((change & 1).cast_signed());
            value = value.wrapping_add((change >> 1).cast_signed() ^ sign);
            let length = u64::from(self.varint(&mut at)?) * u64::from(self.quantum);
            end = end.saturating_add(length);
            if distance < end {
                self.spend(pair);
                return Some(value);
            }
        }
        self.spend(most);
        None
    }

    fn spend(&self, pairs: u64) {
        let _ = self
            .left
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(pairs)));
    }

    /// Seven bits in each byte, the lowest first.
    fn varint(&self, at: &mut usize) -> Option<u32> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.bytes.u8(*at)?;
            *at += 1;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_for_as_long_as_their_pairs_say() {
        // From -1: +1 for 2 bytes, +200 (as 400) for 3, -3 (as 5) for 1.
        let bytes = [0xff, 2, 2, 0x90, 0x03, 3, 5, 1, 0, 9, 9];
        let values = Values::new(Bytes(&bytes), 1);
        let check = |distance, expected| assert_eq!(values.at(1, distance), expected, "{distance}");
        check(0, Some(0));
        check(1, Some(0));
        check(2, Some(200));
        check(4, Some(200));
        check(5, Some(197));
        check(6, None);
        assert_eq!(values.at(0, 0), None);
        assert_eq!(values.at(100, 0), None);
        let wide = Values::new(Bytes(&bytes), 4);
        assert_eq!(wide.at(1, 7), Some(0));
        assert_eq!(wide.at(1, 8), Some(200));
    }

    #[test]
    fn a_first_change_of_nothing_ends_no_table() {
        let values = Values::new(Bytes(&[9, 0, 4, 4, 1]), 1);
        assert_eq!(values.at(1, 3), Some(-1));
        assert_eq!(values.at(1, 4), Some(1));
    }

    #[test]
    fn tables_without_end_are_left() {
        // Pairs that lead nowhere: the number changes, the place does not.
        let bytes = [2, 0].repeat(2 << 20);
        let values = Values::new(Bytes(&bytes), 1);
        let lookups = Values::MOST_IN_ALL / Values::MOST;
        for _ in 0..4 {
            assert_eq!(values.at(2, 5), None);
        }
        assert_eq!(values.left.load(Relaxed), (lookups - 4) * Values::MOST);
    }
}
