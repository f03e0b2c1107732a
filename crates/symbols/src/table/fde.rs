//! Where functions begin, from the unwind tables: stripped files have these.

use std::borrow::Cow;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection};
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
        let header = EhFrameHdr::new(&self.header, LittleEndian);
        let header = header.parse(&self.bases, self.address_size).ok()?;
        let mut frames = EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(self.address_size);
        let entry = header.table()?.fde_for_address(
            &frames,
            &self.bases,
            address,
            EhFrame::<EndianSlice<'_, LittleEndian>>::cie_from_offset,
        );
        entry.ok().map(|entry| entry.initial_address())
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
    }
}
