//! Numbers in foreign memory.

use crate::Memory;

/// The word at `address`.
pub(crate) fn word(memory: &mut impl Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let count = memory.read(address, &mut bytes);
    (count == bytes.len()).then(|| u64::from_le_bytes(bytes))
}

/// The word at an offset into these bytes.
pub(crate) fn word_at(bytes: &[u8], offset: u16) -> Option<u64> {
    let bytes = bytes.get(usize::from(offset)..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Reads larger blocks of memory, in which frames are next to each other, the callers at lower
/// addresses.
#[derive(Default)]
pub(crate) struct Block {
    start: u64,
    bytes: Vec<u8>,
}

impl Block {
    const SIZE: u64 = 4096;

    /// So many bytes from `address` on.
    pub(crate) fn bytes(
        &mut self,
        memory: &mut impl Memory,
        address: u64,
        size: usize,
    ) -> Option<&[u8]> {
        if self.find(address, size).is_none() {
            let page = address & !(Self::SIZE - 1);
            let end = address.checked_add(size as u64)?;
            self.bytes.resize(Self::SIZE.max(end - page) as usize, 0);
            self.start = page;
            let count = memory.read(page, &mut self.bytes);
            self.bytes.truncate(count);
        }
        self.find(address, size)
    }

    fn find(&self, address: u64, size: usize) -> Option<&[u8]> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..)?.get(..size)
    }
}
