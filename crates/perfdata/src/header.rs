//! `struct perf_event_header`, which begins every record.

use crate::bytes::Bytes;
use crate::error::RecordError;

/// The header of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Bytes of the whole record.
    pub(crate) size: u16,
}

/// Splits bytes into whole records, with the type of each ([`record_type`](crate::record_type)).
/// Ends at the first invalid one.
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let header = RecordHeader::parse(bytes)?;
        let (record, rest) = bytes.split_at_checked(header.size.into())?;
        bytes = rest;
        Some((header.kind, record))
    })
}

impl RecordHeader {
    pub(crate) const SIZE: usize = 8;

    /// `None` if there are too few bytes for a header, or the header states less than its own
    /// size.
    pub(crate) fn parse(record: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(record);
        let header = Self {
            kind: bytes.u32()?,
            misc: bytes.u16()?,
            size: bytes.u16()?,
        };
        (usize::from(header.size) >= Self::SIZE).then_some(header)
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let [k0, k1, k2, k3] = self.kind.to_le_bytes();
        let [m0, m1] = self.misc.to_le_bytes();
        let [s0, s1] = self.size.to_le_bytes();
        [k0, k1, k2, k3, m0, m1, s0, s1]
    }

    /// Appends a record of this type.
    pub(crate) fn put(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
        let header = Self {
            kind,
            misc: 0,
            size: (Self::SIZE + body.len()) as u16,
        };
        out.extend(header.to_bytes());
        out.extend(body);
    }

    pub(crate) fn short(self, record: &[u8]) -> RecordError {
        RecordError::Short {
            kind: self.kind,
            size: record.len(),
        }
    }
}
