//! The bytes of a section, read page by page on demand. A few in a thousand of a large library's
//! entries are used; unread pages take no memory.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of a section, which can be shared. Unread ones are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct SectionBytes(Arc<Vec<u8>>);

impl Deref for SectionBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SectionBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

/// Reads from a section's file, from a position in it; unreadable bytes stay unchanged.
pub(crate) type ReadFile<'a> = &'a dyn Fn(u64, &mut [u8]);

/// Which pages of a section have been read.
#[derive(Debug)]
pub(super) struct Pages {
    /// Where the section begins in its file.
    file_offset: u64,
    read: Vec<bool>,
    /// The number of pages.
    count: usize,
}

impl Pages {
    const SIZE: usize = 4096;

    /// No pages of a section of this size, which begins at this offset of its file.
    pub(super) fn unread(file_offset: u64, size: usize) -> Self {
        Self {
            file_offset,
            read: vec![false; size.div_ceil(Self::SIZE)],
            count: 0,
        }
    }

    /// Bytes of memory that the section uses.
    pub(super) fn size(&self) -> usize {
        self.count * Self::SIZE + self.read.len()
    }

    /// Reads the entry (CIE or FDE) at this offset of the section, and the CIE that it refers to.
    pub(super) fn read_entry(
        &mut self,
        offset: usize,
        bytes: &mut SectionBytes,
        file: ReadFile<'_>,
    ) {
        const LENGTH_IS_64_BIT: u32 = u32::MAX;
        /// The length, and the distance to the CIE or its marker.
        const HEAD: usize = 8;
        let mut at = Some(offset);
        for _ in 0..2 {
            let Some(offset) = at else { return };
            self.read_range(offset..offset.saturating_add(HEAD), bytes, file);
            let (Some(length), Some(distance)) = (word(bytes, offset), word(bytes, offset + 4))
            else {
                return;
            };
            let end = match length {
                LENGTH_IS_64_BIT => bytes.len(),
                length => offset.saturating_add(length as usize + 4),
            };
            let start = if length == LENGTH_IS_64_BIT {
                0
            } else {
                offset
            };
            self.read_range(start..end, bytes, file);
            at = (offset + 4)
                .checked_sub(distance as usize)
                .filter(|_| distance != 0);
        }
    }

    /// Reads the whole section.
    pub(super) fn read_all(&mut self, bytes: &mut SectionBytes, file: ReadFile<'_>) {
        self.read_range(0..bytes.len(), bytes, file);
    }

    fn read_range(&mut self, range: Range<usize>, bytes: &mut SectionBytes, file: ReadFile<'_>) {
        // The bytes are shared only after they were read.
        let Some(bytes) = Arc::get_mut(&mut bytes.0) else {
            return;
        };
        let pages = range.start / Self::SIZE..range.end.div_ceil(Self::SIZE);
        for number in pages.start..pages.end.min(self.read.len()) {
            let start = number * Self::SIZE;
            let end = bytes.len().min(start + Self::SIZE);
            let (Some(read), Some(page)) = (self.read.get_mut(number), bytes.get_mut(start..end))
            else {
                return;
            };
            if !std::mem::replace(read, true) {
                file(self.file_offset.saturating_add(start as u64), page);
                self.count += 1;
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an entry of that length at the offset in a section of 20 pages, with its CIE at 8;
    /// expects these pages to be read.
    fn check(offset: usize, length: u32, expected: &[usize]) {
        let mut section = vec![0xee; 20 * Pages::SIZE];
        let mut put = |at: usize, word: u32| {
            section[at..at + 4].copy_from_slice(&word.to_le_bytes());
        };
        put(8, 20);
        put(12, 0);
        put(offset, length);
        put(offset + 4, (offset + 4 - 8) as u32);
        let read = |at: u64, page: &mut [u8]| {
            let at = at as usize - 1000;
            page.copy_from_slice(&section[at..at + page.len()]);
        };
        let mut bytes = SectionBytes::from(vec![0; section.len()]);
        let mut pages = Pages::unread(1000, section.len());
        pages.read_entry(offset, &mut bytes, &read);
        let found: Vec<usize> = (0..20).filter(|&page| pages.read[page]).collect();
        assert_eq!(found, expected);
        assert_eq!(pages.count, expected.len());
        for page in found {
            let page = page * Pages::SIZE..(page + 1) * Pages::SIZE;
            assert_eq!(bytes[page.clone()], section[page]);
        }
        pages.read_all(&mut bytes, &read);
        assert_eq!(bytes[..], section[..]);
    }

    #[test]
    fn only_referenced_pages_are_read() {
        check(100, 40, &[0]);
        check(5 * Pages::SIZE + 100, 40, &[0, 5]);
        check(5 * Pages::SIZE - 6, 40, &[0, 4, 5]);
        check(7 * Pages::SIZE, 2 * Pages::SIZE as u32, &[0, 7, 8, 9]);
        // Beyond the end, and in the format for sections of many gigabytes.
        check(18 * Pages::SIZE, 1 << 30, &[0, 18, 19]);
        check(7 * Pages::SIZE, u32::MAX, &Vec::from_iter(0..20));
    }
}
