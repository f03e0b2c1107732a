//! The memory of a process, and reading it within limits.

/// The memory of a process.
///
/// An implementation may answer from the copy of a stack that came with a sample, so that what the
/// runtime keeps there is of the sample's own moment.
pub trait Memory {
    /// Copies memory from `address` up into `buffer` and returns how many bytes, from the first
    /// on, could be read: fewer than asked, or 0, where memory is not mapped or the process gone.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;
}

/// Reads words and blocks, and at most so many bytes of them.
pub(crate) struct Reader<'a, M> {
    memory: &'a mut M,
    /// Bytes that may still be read.
    left: usize,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The memory at this address cannot be read.
    Unreadable(u64),
    /// All that may be read was read.
    Limit,
}

impl<'a, M: Memory> Reader<'a, M> {
    pub(crate) fn new(memory: &'a mut M, limit: usize) -> Self {
        Self {
            memory,
            left: limit,
        }
    }

    /// Fills `buffer` from `address` on.
    pub(crate) fn fill(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let left = self.left.checked_sub(buffer.len());
        self.left = left.ok_or(ReadError::Limit)?;
        match self.memory.read(address, buffer) == buffer.len() {
            true => Ok(()),
            false => Err(ReadError::Unreadable(address)),
        }
    }

    pub(crate) fn bytes<const N: usize>(&mut self, address: u64) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(address, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn word(&mut self, address: u64) -> Result<u64, ReadError> {
        self.bytes(address).map(u64::from_le_bytes)
    }

    pub(crate) fn int(&mut self, address: u64) -> Result<i32, ReadError> {
        self.bytes(address).map(i32::from_le_bytes)
    }

    /// So many bytes, which the caller has checked against a limit of its own.
    pub(crate) fn block(&mut self, address: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        if length > self.left {
            return Err(ReadError::Limit);
        }
        let mut bytes = vec![0; length];
        self.fill(address, &mut bytes)?;
        Ok(bytes)
    }
}
