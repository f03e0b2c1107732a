//! From an address to the entry (FDE) that covers it.

use gimli::{BaseAddresses, UnwindOffset, UnwindSection};

use super::{Bytes, SectionBytes};

/// A sorted table of function starts.
#[derive(Debug)]
pub(crate) enum Index {
    /// The linker's own table in `.eh_frame_hdr`.
    Header {
        bytes: SectionBytes,
        header_address: u64,
        eh_frame_address: u64,
        count: usize,
    },
    /// Built by us: (first address, offset of the FDE in its section), sorted.
    Built(Vec<(u64, usize)>),
}

/// `.eh_frame_hdr` as every linker writes it: version 1; pointer to `.eh_frame` relative to
/// itself, 4 bytes; count, 4 bytes; pairs relative to the header, 4 bytes each (LSB, "The
/// .eh_frame_hdr section").
const USUAL_ENCODING: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const POINTER: usize = 4;
const COUNT: usize = 8;
const TABLE: usize = 12;
const PAIR: usize = 8;

/// How many entries before the best match are tried as well: entries may overlap or be nested in
/// damaged or hand-made tables.
const CANDIDATES: usize = 4;

impl Index {
    /// The table of `.eh_frame_hdr`, if it has the usual form.
    pub(crate) fn from_header(
        bytes: Vec<u8>,
        header_address: u64,
        eh_frame_address: u64,
    ) -> Option<Self> {
        if !bytes.starts_with(&USUAL_ENCODING) {
            return None;
        }
        let stated = word(&bytes, COUNT)? as u32 as usize;
        let count = stated.min(bytes.len().checked_sub(TABLE)? / PAIR);
        (count > 0).then(|| Self::Header {
            bytes: bytes.into(),
            header_address,
            eh_frame_address,
            count,
        })
    }

    /// Reads the whole section. Unreadable entries are skipped, and so are those for addresses
    /// outside of code.
    pub(crate) fn build<'a, S>(
        section: &S,
        bases: &BaseAddresses,
        is_code: &dyn Fn(u64) -> bool,
    ) -> Self
    where
        S: UnwindSection<Bytes<'a>>,
    {
        let mut table = Vec::new();
        let mut last_cie = None;
        for offset in entries(section.section().slice()) {
            let Ok(partial) = section.partial_fde_from_offset(bases, S::Offset::from(offset))
            else {
                continue;
            };
            let fde = partial.parse(|section, bases, at| {
                let key = UnwindOffset::into(at);
                match &last_cie {
                    Some((known, cie)) if *known == key => Ok(cie),
                    _ => section
                        .cie_from_offset(bases, at)
                        .map(|cie| &last_cie.insert((key, cie)).1),
                }
                .cloned()
            });
            let Ok(fde) = fde else { continue };
            if fde.len() > 0 && is_code(fde.initial_address()) {
                table.push((fde.initial_address(), offset));
            }
        }
        table.sort_unstable();
        table.dedup();
        Self::Built(table)
    }

    /// Offsets of the FDEs that may cover `address`, the best first.
    pub(crate) fn candidates(&self, address: u64) -> impl Iterator<Item = usize> + '_ {
        let after = self.partition_point(address);
        (0..after)
            .rev()
            .take(CANDIDATES)
            .filter_map(|at| self.fde_offset(at))
    }

    /// How many entries start at or before `address`.
    fn partition_point(&self, address: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.start(middle).is_some_and(|start| start <= address) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes of memory that it uses.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Header { bytes, .. } => bytes.len(),
            Self::Built(table) => size_of_val(table.as_slice()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Header { count, .. } => *count,
            Self::Built(table) => table.len(),
        }
    }

    fn start(&self, at: usize) -> Option<u64> {
        match self {
            Self::Header {
                bytes,
                header_address,
                ..
            } => Some(relative(*header_address, word(bytes, TABLE + at * PAIR)?)),
            Self::Built(table) => Some(table.get(at)?.0),
        }
    }

    fn fde_offset(&self, at: usize) -> Option<usize> {
        match self {
            Self::Header {
                bytes,
                header_address,
                eh_frame_address,
                ..
            } => {
                let address = relative(*header_address, word(bytes, TABLE + at * PAIR + 4)?);
                usize::try_from(address.checked_sub(*eh_frame_address)?).ok()
            }
            Self::Built(table) => Some(table.get(at)?.1),
        }
    }
}

/// The address of `.eh_frame` by `.eh_frame_hdr`.
pub(crate) fn eh_frame_address(header: &[u8], header_address: u64) -> Option<u64> {
    if !header.starts_with(&USUAL_ENCODING[..2]) {
        return None;
    }
    let at = header_address.wrapping_add(POINTER as u64);
    Some(relative(at, word(header, POINTER)?))
}

fn relative(base: u64, offset: i32) -> u64 {
    base.wrapping_add_signed(i64::from(offset))
}

fn word(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

/// The offsets of all entries (CIEs and FDEs) of a section. A zero length, which ends `.eh_frame`
/// for the run-time unwinder, is skipped: linkers leave some in the middle.
fn entries(section: &[u8]) -> impl Iterator<Item = usize> + '_ {
    const LENGTH_IS_64_BIT: u32 = u32::MAX;
    let mut next = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let offset = next;
            let length = word(section, offset)? as u32;
            let (header, length) = match length {
                LENGTH_IS_64_BIT => {
                    let bytes = section.get(offset + 4..offset + 12)?;
                    (12, u64::from_le_bytes(bytes.try_into().ok()?))
                }
                length => (4, u64::from(length)),
            };
            let length = usize::try_from(length).ok()?;
            next = offset.checked_add(header)?.checked_add(length)?;
            if length > 0 {
                return Some(offset);
            }
        }
    })
}
