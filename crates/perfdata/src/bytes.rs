//! Takes little-endian numbers off the front of a slice, whatever its alignment.

/// The rest of a slice. Every method returns `None`, and takes nothing, if the rest is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Like [`take`](Self::take) for counts that a file states: `count` items of `size` bytes.
    pub(crate) fn take_items(&mut self, count: u64, size: usize) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(size)?)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that is there only under a condition. The outer `Option` is `None` if it should
    /// be there and isn't.
    pub(crate) fn u64_if(&mut self, there: bool) -> Option<Option<u64>> {
        if there {
            self.u64().map(Some)
        } else {
            Some(None)
        }
    }

    /// A string that ends with a zero byte or with the slice; consumes the rest.
    pub(crate) fn string(&mut self) -> &'a [u8] {
        let all = std::mem::take(&mut self.0);
        let end = all.iter().position(|&byte| byte == 0);
        &all[..end.unwrap_or(all.len())]
    }
}

/// The number at `offset`.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Bytes::new(bytes.get(offset..)?).u64()
}
