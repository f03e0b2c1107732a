//! Where functions begin and end, from the unwind tables: stripped files have these.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{
    BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, ParsedEhFrameHdr, UnwindSection,
};
use object::{Object, ObjectSection};

use crate::image::Image;

/// The unwind tables of a file.
pub(crate) struct UnwindTables<'data> {
    header: Cow<'data, [u8]>,
    frames: Cow<'data, [u8]>,
    bases: BaseAddresses,
    address_size: u8,
}

impl<'data> UnwindTables<'data> {
    pub(crate) fn of(image: &Image<'data>) -> Self {
        let address = |name| {
            let section = image.object().section_by_name(name);
            section.map_or(0, |section| section.address())
        };
        Self {
            header: image.section(".eh_frame_hdr"),
            frames: image.section(".eh_frame"),
            bases: BaseAddresses::default()
                .set_eh_frame_hdr(address(".eh_frame_hdr"))
                .set_eh_frame(address(".eh_frame"))
                .set_text(address(".text")),
            address_size: if image.object().is_64() { 8 } else { 4 },
        }
    }

    /// Where the function begins that `address` is in, if an entry covers it. The entry of a
    /// procedure linkage table covers all of it.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        self.entry(address).map(|entry| entry.start)
    }

    /// The addresses of the entry that covers this one.
    pub(crate) fn entry(&self, address: u64) -> Option<Range<u64>> {
        let header = self.header()?;
        let mut frames = EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(self.address_size);
        let entry = header.table()?.fde_for_address(
            &frames,
            &self.bases,
            address,
            EhFrame::<EndianSlice<'_, LittleEndian>>::cie_from_offset,
        );
        let entry = entry.ok()?;
        Some(entry.initial_address()..entry.end_address())
    }

    /// Where the next entry above `address` begins.
    pub(crate) fn next_start(&self, address: u64) -> Option<u64> {
        let header = self.header()?;
        let table = header.table()?;
        let start = |index| {
            let (start, _) = table.iter(&self.bases).nth(index).ok()??;
            start.direct().ok()
        };
        let (mut first, mut last) = (0, table.iter(&self.bases).size_hint().0);
        while first < last {
            let middle = first + (last - first) / 2;
            match start(middle)? <= address {
                true => first = middle + 1,
                false => last = middle,
            }
        }
        start(first)
    }

    fn header(&self) -> Option<ParsedEhFrameHdr<EndianSlice<'_, LittleEndian>>> {
        let header = EhFrameHdr::new(&self.header, LittleEndian);
        header.parse(&self.bases, self.address_size).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_functions_have_a_start() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(path).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let tables = UnwindTables::of(&image);
        let entry = image.object().entry();
        let start = tables.function_start(entry);
        assert_eq!(start, Some(entry));
        assert_eq!(tables.function_start(entry + 1), Some(entry));
        assert_eq!(tables.function_start(1), None);
        let end = tables.entry(entry).unwrap().end;
        assert!(end > entry + 1 && tables.next_start(entry).is_some_and(|next| next >= end));
        assert!(tables.next_start(0).is_some_and(|first| first <= entry));
        assert_eq!(tables.next_start(u64::MAX), None);
    }

    #[test]
    fn damaged_tables_are_none() {
        let tables = UnwindTables {
            header: Cow::Borrowed(&[1, 0x1b, 3, 0x3b, 9, 9]),
            frames: Cow::Borrowed(&[0; 3]),
            bases: BaseAddresses::default(),
            address_size: 8,
        };
        assert_eq!(tables.function_start(0x1000), None);
        assert_eq!(tables.next_start(0x1000), None);
    }
}
