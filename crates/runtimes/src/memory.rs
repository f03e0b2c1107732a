//! The memory of a process.

use std::ops::Range;

/// The memory of a process.
pub trait Memory {
    /// Copies memory from `address` up into `buffer` and returns how many bytes, from the first on,
    /// could be read: fewer than requested, or 0, if memory is not mapped or the process is gone.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;

    /// Copies these ranges of memory, one after the other, into `buffer`, which is as long as all
    /// of them, and returns how many bytes, from the first on, could be read.
    fn read_ranges(&mut self, ranges: &[Range<u64>], buffer: &mut [u8]) -> usize {
        let mut total = 0_usize;
        for range in ranges {
            let length = range.end.saturating_sub(range.start) as usize;
            let Some(part) = buffer.get_mut(total..total.saturating_add(length)) else {
                break;
            };
            let count = self.read(range.start, part);
            total += count;
            if count < length {
                break;
            }
        }
        total
    }
}
