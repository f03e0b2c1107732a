//! Numbers at offsets into bytes; `None` outside of them.

/// Bytes of a file.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'data>(pub(super) &'data [u8]);

impl<'data> Bytes<'data> {
    pub(crate) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(crate) fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// These bytes from `at` on.
    pub(crate) fn from(self, at: usize) -> Option<Self> {
        self.0.get(at..).map(Self)
    }

    /// The first bytes, at most so many.
    pub(crate) fn up_to(self, length: usize) -> Self {
        Self(self.0.get(..length).unwrap_or(self.0))
    }

    /// A number of two or four bytes.
    pub(crate) fn index(self, at: usize, is_wide: bool) -> Option<u32> {
        match is_wide {
            true => self.u32(at),
            false => self.u16(at).map(u32::from),
        }
    }

    /// The text up to the next zero.
    pub(crate) fn text(self, at: usize) -> Option<&'data [u8]> {
        let text = self.0.get(at..)?;
        text.get(..text.iter().position(|&byte| byte == 0)?)
    }
}

/// Reads one number after the other.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'data> {
    pub(crate) bytes: Bytes<'data>,
    pub(crate) at: usize,
}

impl Cursor<'_> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.u8(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A number as metadata encodes it, in one, two or four bytes: ECMA-335, II.23.2.
    pub(crate) fn compressed(&mut self) -> Option<u32> {
        let mut value = u32::from(self.byte()?);
        let more = match value {
            0x00..0x80 => return Some(value),
            0x80..0xc0 => 1,
            _ => 3,
        };
        value &= if more == 1 { 0x3f } else { 0x1f };
        for _ in 0..more {
            value = value << 8 | u32::from(self.byte()?);
        }
        Some(value)
    }

    /// A number as ReadyToRun tables encode it: the low bits of the first byte tell the length.
    pub(crate) fn unsigned(&mut self) -> Option<u32> {
        self.encoded().map(|(value, _)| value)
    }

    /// As [`unsigned`](Self::unsigned), with a sign.
    pub(crate) fn signed(&mut self) -> Option<i32> {
        let (value, bits) = self.encoded()?;
        let unused = 32 - bits;
        Some((value << unused).cast_signed() >> unused)
    }

    /// A number, and of how many bits.
    fn encoded(&mut self) -> Option<(u32, u32)> {
        let first = self.bytes.u8(self.at)?;
        let more = first.trailing_ones();
        if more >= 4 {
            let value = self.bytes.u32(self.at.checked_add(1)?)?;
            self.at += 5;
            return Some((value, 32));
        }
        let mut value = u64::from(first);
        for index in 1..=more {
            let byte = self.bytes.u8(self.at + index as usize)?;
            value |= u64::from(byte) << (8 * index);
        }
        self.at += 1 + more as usize;
        let marks = more + 1;
        Some(((value >> marks) as u32, 8 * (more + 1) - marks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor {
            bytes: Bytes(bytes),
            at: 0,
        }
    }

    #[test]
    fn numbers_of_tables_tell_their_length() {
        let check = |bytes: &[u8], unsigned: u32, signed: i32| {
            let mut numbers = cursor(bytes);
            assert_eq!(numbers.unsigned(), Some(unsigned), "{bytes:x?}");
            assert_eq!(numbers.at, bytes.len(), "{bytes:x?}");
            assert_eq!(cursor(bytes).signed(), Some(signed), "{bytes:x?}");
            for length in 0..bytes.len() {
                assert_eq!(cursor(&bytes[..length]).unsigned(), None);
            }
        };
        check(&[0x02], 1, 1);
        check(&[0xfe], 0x7f, -1);
        check(&[0x01, 0x02], 0x80, 0x80);
        check(&[0xfd, 0xff], 0x3fff, -1);
        check(&[0x03, 0x00, 0x02], 1 << 14, 1 << 14);
        check(&[0x07, 0x00, 0x00, 0x01], 1 << 20, 1 << 20);
        check(&[0x0f, 1, 0, 0, 0x80], 0x8000_0001, i32::MIN + 1);
    }

    /// The examples of ECMA-335, II.23.2.
    #[test]
    fn numbers_of_metadata_tell_their_length() {
        let check = |bytes: &[u8], value| {
            assert_eq!(cursor(bytes).compressed(), Some(value));
            assert_eq!(
                cursor(&bytes[1..]).compressed().filter(|_| bytes.len() < 2),
                None
            );
        };
        check(&[0x7f], 0x7f);
        check(&[0x80, 0x80], 0x80);
        check(&[0xae, 0x57], 0x2e57);
        check(&[0xc0, 0x00, 0x40, 0x00], 0x4000);
        check(&[0xdf, 0xff, 0xff, 0xff], 0x1fff_ffff);
    }
}
