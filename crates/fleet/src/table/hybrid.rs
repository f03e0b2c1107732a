//! Numbers in Parquet's hybrid encoding, which levels have, and places in dictionaries.

/// How many bits a number up to this one takes.
pub(super) fn width(most: u32) -> usize {
    (u32::BITS - most.leading_zeros()) as usize
}

/// How many numbers are packed together.
const GROUP: usize = 8;

/// Appends numbers of so many bits each, in Parquet's hybrid encoding: equal ones in a row as their
/// count and value, others bit by bit in groups of eight.
pub(super) fn write_numbers<T>(numbers: &[T], bits: usize, to: &mut Vec<u8>)
where
    T: Copy + Eq,
    u32: TryFrom<T>,
{
    let number = |number: T| u32::try_from(number).unwrap_or(0);
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let equal = rest.iter().take_while(|&&next| next == first).count();
        let length = match equal >= GROUP || equal == rest.len() {
            true => equal,
            false => packed_length(rest),
        };
        let (run, after) = rest.split_at(length);
        if length == equal {
            write_varint(length << 1, to);
            to.extend_from_slice(&number(first).to_le_bytes()[..bits.div_ceil(8)]);
        } else {
            write_varint(length.div_ceil(GROUP) << 1 | 1, to);
            pack(run.iter().map(|&it| number(it)), bits, to);
        }
        rest = after;
    }
}

/// How many of these numbers come before eight equal ones, in whole groups.
fn packed_length<T: Eq>(numbers: &[T]) -> usize {
    let is_equal = |group: &&[T]| group.iter().all(|number| *number == group[0]);
    let mut groups = numbers.chunks_exact(GROUP);
    let equal = groups.position(|group| is_equal(&group));
    equal.map_or(numbers.len(), |before| before * GROUP)
}

/// Appends numbers bit by bit, filled up to whole groups with zeroes.
fn pack(numbers: impl ExactSizeIterator<Item = u32>, bits: usize, to: &mut Vec<u8>) {
    let count = numbers.len().next_multiple_of(GROUP);
    let zeroes = std::iter::repeat(0);
    let (mut held, mut length) = (0_u64, 0);
    for number in numbers.chain(zeroes).take(count) {
        held |= u64::from(number) << length;
        length += bits;
        while length >= 8 {
            to.push(held as u8);
            held >>= 8;
            length -= 8;
        }
    }
}

fn write_varint(mut number: usize, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(numbers: &[u32], bits: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_numbers(numbers, bits, &mut bytes);
        bytes
    }

    #[test]
    fn numbers_are_runs_and_packed_groups() {
        assert!(written(&[], 3).is_empty());
        // The example of the format's definition.
        let packed = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(written(&[0, 1, 2, 3, 4, 5, 6, 7], 3), packed);
        assert_eq!(written(&[1; 100], 9), [200, 1, 1, 0]);
        assert_eq!(written(&[0; 3], 0), [6]);
        // A group, a run, and what is left, filled up with zeroes.
        let numbers = [&[1, 0, 0, 0, 0, 0, 0, 1][..], &[0; 9], &[1, 0]].concat();
        assert_eq!(written(&numbers, 1), [0b11, 0x81, 18, 0, 0b11, 1]);
    }
}
