//! The memory that a thread's stacks need each time, read with one system call.
//!
//! Calls take most of the time that reading a stack takes. The next stack of the thread starts from
//! the same words, and its frames are in the same pages.

use std::ops::Range;

use prof_runtimes::Memory;

/// The ranges of memory that the last stack of a thread was read from.
#[derive(Debug, Default)]
pub(crate) struct Prefetch {
    ranges: Vec<Range<u64>>,
}

/// Memory of which these ranges were read at once.
pub(crate) struct PrefetchedMemory<'a, M> {
    memory: &'a mut M,
    prefetch: &'a mut Prefetch,
    /// Those of the ranges, one after the other, as far as they could be read.
    bytes: &'a [u8],
    used: [bool; Prefetch::RANGES],
    others: Vec<Range<u64>>,
}

impl Prefetch {
    /// The most ranges, and the longest: two pages.
    const RANGES: usize = 16;
    const LONGEST: usize = 8192;

    /// Reads the ranges into `buffer`.
    pub(crate) fn read<'a, M: Memory>(
        &'a mut self,
        memory: &'a mut M,
        buffer: &'a mut Vec<u8>,
    ) -> PrefetchedMemory<'a, M> {
        buffer.resize(self.ranges.iter().map(length).sum(), 0);
        let count = match self.ranges.is_empty() {
            true => 0,
            false => memory.read_ranges(&self.ranges, buffer),
        };
        PrefetchedMemory {
            memory,
            prefetch: self,
            bytes: buffer.get(..count).unwrap_or_default(),
            used: [false; Self::RANGES],
            others: Vec::new(),
        }
    }
}

impl<M: Memory> PrefetchedMemory<'_, M> {
    /// Remembers what was needed.
    pub(crate) fn finish(self) {
        let mut used = self.used.into_iter();
        let ranges = &mut self.prefetch.ranges;
        ranges.retain(|_| used.next() == Some(true));
        ranges.extend(self.others);
        ranges.truncate(Prefetch::RANGES);
    }

    fn known(&mut self, address: u64, size: usize) -> Option<&[u8]> {
        let mut start = 0;
        for (range, used) in self.prefetch.ranges.iter().zip(&mut self.used) {
            if range.contains(&address) && range.end - address >= size as u64 {
                let at = start + (address - range.start) as usize;
                if let Some(bytes) = self.bytes.get(at..).and_then(|bytes| bytes.get(..size)) {
                    *used = true;
                    return Some(bytes);
                }
            }
            start += length(range);
        }
        None
    }
}

impl<M: Memory> Memory for PrefetchedMemory<'_, M> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        if let Some(known) = self.known(address, buffer.len()) {
            buffer.copy_from_slice(known);
            return buffer.len();
        }
        let count = self.memory.read(address, buffer);
        if (1..=Prefetch::LONGEST).contains(&count) && self.others.len() < Prefetch::RANGES {
            self.others.push(address..address + count as u64);
        }
        count
    }

    fn read_ranges(&mut self, ranges: &[Range<u64>], buffer: &mut [u8]) -> usize {
        self.memory.read_ranges(ranges, buffer)
    }
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte is the lowest of its address; counts how often it is read.
    struct Bytes {
        reads: u32,
        end: u64,
    }

    impl Memory for Bytes {
        fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
            self.reads += 1;
            let count = buffer.len().min(self.end.saturating_sub(address) as usize);
            (address..)
                .zip(&mut buffer[..count])
                .for_each(|(at, byte)| *byte = at as u8);
            count
        }

        fn read_ranges(&mut self, ranges: &[Range<u64>], buffer: &mut [u8]) -> usize {
            let before = self.reads;
            let mut total = 0;
            for range in ranges {
                let count = self.read(range.start, &mut buffer[total..][..length(range)]);
                total += count;
                if count < length(range) {
                    break;
                }
            }
            self.reads = before + 1;
            total
        }
    }

    /// Reads words of memory that ends at `end`, and returns how many calls that took.
    fn reads(prefetch: &mut Prefetch, end: u64, addresses: &[u64]) -> u32 {
        let (mut memory, mut buffer) = (Bytes { reads: 0, end }, Vec::new());
        let mut prefetched = prefetch.read(&mut memory, &mut buffer);
        for &address in addresses {
            let mut word = [0; 8];
            let count = prefetched.read(address, &mut word);
            assert_eq!(count as u64, end.saturating_sub(address).min(8));
            assert!(
                count == 0 || word[0] == address as u8,
                "{address}: {word:?}"
            );
        }
        prefetched.finish();
        memory.reads
    }

    #[test]
    fn the_same_memory_is_read_with_one_call() {
        let mut prefetch = Prefetch::default();
        assert_eq!(reads(&mut prefetch, 9000, &[16, 5000, 300]), 3);
        assert_eq!(reads(&mut prefetch, 9000, &[16, 5000, 300, 16]), 1);
        // Another word, and one that is not needed any more.
        assert_eq!(reads(&mut prefetch, 9000, &[16, 400, 300]), 2);
        assert_eq!(reads(&mut prefetch, 9000, &[16, 5000]), 2);
    }

    #[test]
    fn memory_that_is_gone_is_read_no_more() {
        let mut prefetch = Prefetch::default();
        assert_eq!(reads(&mut prefetch, 9000, &[16, 5000, 300]), 3);
        // With the ranges, and each that was behind the first one that cannot be read.
        assert_eq!(reads(&mut prefetch, 400, &[16, 5000, 300]), 3);
        assert_eq!(reads(&mut prefetch, 400, &[16, 5000, 300]), 2);
        assert_eq!(prefetch.ranges, [16..24, 300..308]);
    }

    #[test]
    fn ranges_are_bounded() {
        let mut prefetch = Prefetch::default();
        let many: Vec<u64> = (0..100).map(|number| 10 * number).collect();
        reads(&mut prefetch, 9000, &many);
        assert_eq!(prefetch.ranges.len(), Prefetch::RANGES);
        let (mut memory, mut buffer) = (
            Bytes {
                reads: 0,
                end: u64::MAX,
            },
            Vec::new(),
        );
        let mut prefetch = Prefetch::default();
        let mut prefetched = prefetch.read(&mut memory, &mut buffer);
        prefetched.read(0, &mut [0; Prefetch::LONGEST + 1]);
        prefetched.finish();
        assert_eq!(prefetch.ranges, []);
    }
}
