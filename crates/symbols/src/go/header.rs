//! The header of Go's tables, and their records of functions.

use super::Bytes;

/// The version of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Go 1.18 and 1.19.
    Go118,
    /// Go 1.20 and later.
    Go120,
}

/// The parts of the tables.
#[derive(Clone, Copy)]
pub(super) struct Header<'data> {
    pub(super) layout: Layout,
    /// The least length of an instruction.
    pub(super) quantum: u8,
    /// How many functions there are.
    pub(super) count: usize,
    /// Where the code begins; 0 if the header does not say it, and before a program is relocated.
    pub(super) text: u64,
    /// The offsets of the parts, of names first and functions last.
    pub(super) offsets: [usize; PARTS],
    names: Bytes<'data>,
    units: Bytes<'data>,
    files: Bytes<'data>,
    pub(super) values: Bytes<'data>,
    pub(super) functions: Bytes<'data>,
}

/// Names, units, files, values, functions.
const PARTS: usize = 5;

/// No file, or no tree of inlined calls.
const NONE: u32 = u32::MAX;

/// The tables that a function's record names.
pub(super) struct Tables {
    /// The place of the first.
    pub(super) first: usize,
    /// How many tables of values it has.
    pub(super) values: u32,
    /// How many other data.
    data: u8,
}

impl<'data> Header<'data> {
    /// The size of a header.
    pub(super) const SIZE: usize = 72;
    /// Longer names are none.
    const LONGEST: usize = 8 << 10;

    /// Reads the header that these bytes begin with. What they refer to follows, in this order.
    pub(super) fn parse(bytes: Bytes<'data>) -> Option<Self> {
        const POINTER: u8 = 8;
        let layout = match bytes.u32(0)? {
            0xffff_fff0 => Layout::Go118,
            0xffff_fff1 => Layout::Go120,
            _ => return None,
        };
        let quantum = bytes.u8(6)?;
        let is_known = bytes.u16(4)? == 0 && matches!(quantum, 1 | 4) && bytes.u8(7)? == POINTER;
        is_known.then_some(())?;
        let number = |index: usize| usize::try_from(bytes.u64(8 + 8 * index)?).ok();
        let count = number(0)?;
        let mut offsets = [0; PARTS];
        for (index, offset) in offsets.iter_mut().enumerate() {
            *offset = number(3 + index)?;
        }
        (offsets[0] >= Self::SIZE && offsets.is_sorted()).then_some(())?;
        let part = |index: usize| {
            let part = bytes.from(offsets[index])?;
            Some(match offsets.get(index + 1) {
                Some(end) => part.up_to(end - offsets[index]),
                None => part,
            })
        };
        let header = Self {
            layout,
            quantum,
            count,
            text: bytes.u64(8 + 8 * 2)?,
            offsets,
            names: part(0)?,
            units: part(1)?,
            files: part(2)?,
            values: part(3)?,
            functions: part(4)?,
        };
        // The first function's record repeats where it begins.
        let first = header.functions.u32(header.record(0)?)?;
        (count > 0 && header.entry(count)? > first && header.entry(0)? == first).then_some(header)
    }

    /// The offset of a function; that after the last is the end of all.
    pub(super) fn entry(&self, index: usize) -> Option<u32> {
        self.functions.u32(index.checked_mul(8)?)
    }

    /// The place of a function's record.
    pub(super) fn record(&self, index: usize) -> Option<usize> {
        let offset = self.functions.u32(index.checked_mul(8)?.checked_add(4)?)?;
        usize::try_from(offset).ok()
    }

    /// The tables of a function.
    pub(super) fn tables_of(&self, record: usize) -> Option<Tables> {
        const VALUES: usize = 28;
        // From 1.20 on, the function's first line is before its last fields.
        let size = match self.layout {
            Layout::Go118 => 40,
            Layout::Go120 => 44,
        };
        Some(Tables {
            first: record.checked_add(size)?,
            values: self.functions.u32(record.checked_add(VALUES)?)?,
            data: self.functions.u8(record.checked_add(size - 1)?)?,
        })
    }

    /// A function's name.
    pub(super) fn name(&self, offset: u32) -> Option<&'data [u8]> {
        let names = self.names.from(usize::try_from(offset).ok()?)?;
        let name = names.up_to(Self::LONGEST).text(0)?;
        (!name.is_empty()).then_some(name)
    }

    /// Whether a name begins at this offset.
    pub(super) fn is_name(&self, offset: u32) -> bool {
        let before = usize::try_from(offset)
            .ok()
            .and_then(|at| at.checked_sub(1));
        before.is_none_or(|before| self.names.u8(before) == Some(0)) && self.name(offset).is_some()
    }

    /// The path of a file, by its number among those of all units.
    pub(super) fn file(&self, number: u32) -> Option<&'data [u8]> {
        let place = usize::try_from(number).ok()?.checked_mul(4)?;
        let offset = self.units.u32(place).filter(|&offset| offset != NONE)?;
        let files = self.files.from(usize::try_from(offset).ok()?)?;
        let file = files.up_to(Self::LONGEST).text(0)?;
        (!file.is_empty()).then_some(file)
    }
}

impl Tables {
    /// The offset of the function's tree of inlined calls.
    pub(super) fn inline_tree(&self, header: &Header<'_>) -> Option<u32> {
        /// `FUNCDATA_InlTree`
        const TREE: u8 = 3;
        (self.data > TREE).then_some(())?;
        let index = usize::try_from(self.values)
            .ok()?
            .checked_add(TREE.into())?;
        let place = self.first.checked_add(index.checked_mul(4)?)?;
        header.functions.u32(place).filter(|&offset| offset != NONE)
    }
}
