//! The lines of a function's instructions: iseq.c, `get_insn_info_succinct`.
//!
//! Few instructions have an entry. The index tells how many entries there are up to an instruction:
//!
//! ```text
//!   instructions 0 to 53    7 bits each, 9 in a word                       6 words
//!   512 instructions each   entries before them; the same for groups of    10 words
//!                           64, 9 bits each; a bit for each instruction
//! ```

use crate::Memory;
use crate::read::word_at;

/// The lines of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// Those of the entries.
    lines: Vec<u32>,
    index: Vec<u8>,
}

impl Lines {
    /// Bytes of an entry, which begins with the line.
    const ENTRY: usize = 12;
    const FIRST: u64 = 54;
    const FIRST_SIZE: usize = 48;
    const BLOCK: u64 = 512;
    const BLOCK_SIZE: usize = 80;

    /// Reads `count` entries and the index of `length` instructions.
    pub(super) fn read(
        memory: &mut impl Memory,
        (entries, count): (u64, usize),
        (index, length): (u64, u64),
    ) -> Self {
        let mut bytes = vec![0; count * Self::ENTRY];
        let read = memory.read(entries, &mut bytes);
        bytes.truncate(read);
        let (entries, _) = bytes.as_chunks::<{ Self::ENTRY }>();
        let line = |entry: &[u8; Self::ENTRY]| {
            entry
                .first_chunk()
                .map_or(0, |&line| u32::from_le_bytes(line))
        };
        let lines = entries.iter().map(line).collect();
        let blocks = length.saturating_sub(Self::FIRST).div_ceil(Self::BLOCK) as usize;
        let mut bytes = vec![0; Self::FIRST_SIZE + blocks * Self::BLOCK_SIZE];
        let read = match count {
            // There is no index of a single entry.
            0 | 1 => 0,
            _ => memory.read(index, &mut bytes),
        };
        bytes.truncate(read);
        Self {
            lines,
            index: bytes,
        }
    }

    /// Bytes of memory that they use.
    pub(super) fn footprint(&self) -> usize {
        self.index.capacity() + self.lines.capacity() * size_of::<u32>()
    }

    /// The line of an instruction, by the word that it begins with.
    pub(super) fn line(&self, at: u64) -> Option<u32> {
        let number = match self.lines.len() {
            1 => 1,
            _ => self.entries_up_to(at)?,
        };
        let number = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(number).copied()
    }

    fn entries_up_to(&self, at: u64) -> Option<u64> {
        let word = |offset: usize| word_at(&self.index, u16::try_from(offset).ok()?);
        let Some(at) = at.checked_sub(Self::FIRST) else {
            let word = word(at as usize / 9 * 8)?;
            return Some(word >> (at % 9 * 7) & 0x7f);
        };
        let block = Self::FIRST_SIZE + (at / Self::BLOCK) as usize * Self::BLOCK_SIZE;
        let group = at % Self::BLOCK / 64;
        let before_block = word(block)? & 0xffff_ffff;
        let before_group = match group.checked_sub(1) {
            Some(previous) => word(block + 8)? >> (previous * 9) & 0x1ff,
            None => 0,
        };
        let bits = word(block + 16 + group as usize * 8)?;
        let in_group = bits << (63 - at % 64);
        Some(before_block + before_group + u64::from(in_group.count_ones()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of entries at these instructions, as Ruby builds it.
    fn index(entries: &[u64], length: u64) -> Vec<u8> {
        let up_to = |at: u64| entries.iter().filter(|&&entry| entry <= at).count() as u64;
        let before = |at: u64| entries.iter().filter(|&&entry| entry < at).count() as u64;
        let first = (0..6).map(|word| {
            let bits = (0..9).map(|at| up_to(word * 9 + at) << (at * 7));
            bits.sum::<u64>()
        });
        let mut words: Vec<u64> = first.collect();
        for block in 0..length.saturating_sub(54).div_ceil(512) {
            let start = 54 + block * 512;
            words.push(before(start));
            let groups = (0..7)
                .map(|group| (before(start + (group + 1) * 64) - before(start)) << (group * 9));
            words.push(groups.sum());
            for group in 0..8 {
                let bit = |at: u64| u64::from(entries.contains(&(start + group * 64 + at))) << at;
                words.push((0..64).map(bit).sum());
            }
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn instructions_have_the_line_of_the_last_entry() {
        let entries = [0, 3, 53, 54, 60, 117, 118, 500, 566, 900, 1500];
        let lines = Lines {
            lines: (1..=entries.len() as u32).collect(),
            index: index(&entries, 1600),
        };
        for at in 0..1600 {
            let expected = entries.iter().filter(|&&entry| entry <= at).count() as u32;
            assert_eq!(lines.line(at), Some(expected), "{at}");
        }
        assert_eq!(lines.line(1 << 20), None);
    }
}
