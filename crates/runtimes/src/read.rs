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
