//! The memory of a process.

/// The memory of a process.
pub trait Memory {
    /// Copies memory from `address` up into `buffer` and returns how many bytes, from the first on,
    /// could be read: fewer than requested, or 0, if memory is not mapped or the process is gone.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;
}
