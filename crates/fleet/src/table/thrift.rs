//! Which descriptions of files and pages are read: those of the format's definition
//! (parquet.thrift, in Thrift's compact protocol).
//!
//! The crate `parquet` trusts the types that it expects, and skips fields that it does not know,
//! among them lists of two billion truth values that take no bytes. So it reads a description only
//! if each field here has the definition's type, which takes no longer than its bytes.

use bytes::Bytes;

/// The type of a field. Integers of 16, 32 and 64 bits are encoded alike, but for their mark.
#[derive(Clone, Copy, Debug)]
enum Type {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Binary,
    List(&'static Type),
    Struct(&'static [(u8, Type)]),
}

use Type::{Binary, Bool, I8, I16, I32, I64, List, Struct};

/// At the end of a file: FileMetaData.
const FILE: &[(u8, Type)] = &[
    (1, I32),
    (2, List(&Struct(SCHEMA_ELEMENT))),
    (3, I64),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER))),
];

const SCHEMA_ELEMENT: &[(u8, Type)] = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Binary),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, Struct(LOGICAL_TYPE)),
];

const EMPTY: Type = Struct(&[]);

/// Those that prof's columns have: texts, lists, times, integers.
const LOGICAL_TYPE: &[(u8, Type)] = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (8, Struct(&[(1, Bool), (2, Struct(TIME_UNIT))])),
    (10, Struct(&[(1, I8), (2, Bool)])),
];

const TIME_UNIT: &[(u8, Type)] = &[(1, EMPTY), (2, EMPTY), (3, EMPTY)];

const COLUMN_ORDER: &[(u8, Type)] = &[(1, EMPTY), (2, EMPTY)];

const KEY_VALUE: &[(u8, Type)] = &[(1, Binary), (2, Binary)];

const ROW_GROUP: &[(u8, Type)] = &[
    (1, List(&Struct(COLUMN_CHUNK))),
    (2, I64),
    (3, I64),
    (5, I64),
    (6, I64),
    (7, I16),
];

const COLUMN_CHUNK: &[(u8, Type)] = &[(2, I64), (3, Struct(COLUMN))];

const COLUMN: &[(u8, Type)] = &[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (9, I64),
    (11, I64),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])),
];

const STATISTICS: &[(u8, Type)] = &[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
];

/// Before each page: PageHeader, of data pages and dictionaries.
const PAGE: &[(u8, Type)] = &[
    (1, I32),
    (2, I32),
    (PACKED_SIZE, I32),
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32)])),
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),
];

/// The field with the number of bytes that follow a page's description.
const PACKED_SIZE: u8 = 3;

/// Whether a file ends as the definition says: a description, its length, and `PAR1`.
pub(super) fn is_known_file(file: &Bytes) -> bool {
    let description = || {
        let (rest, _magic) = file.split_last_chunk::<4>()?;
        let (rest, length) = rest.split_last_chunk()?;
        let start = rest
            .len()
            .checked_sub(u32::from_le_bytes(*length) as usize)?;
        rest.get(start..)
    };
    description().is_some_and(|bytes| Reader(bytes).fields(FILE, &mut |_, _| ()).is_some())
}

/// Whether all pages of a column are described as the definition says, one after the other.
pub(super) fn are_known_pages(column: &[u8]) -> bool {
    let mut reader = Reader(column);
    while !reader.0.is_empty() {
        if reader.page().is_none() {
            return false;
        }
    }
    true
}

/// What is still to be read. `None` is anything that is not as expected.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn page(&mut self) -> Option<()> {
        let mut size = None;
        self.fields(PAGE, &mut |field, value| {
            if field == PACKED_SIZE {
                size = Some(value);
            }
        })?;
        self.skip(size?.try_into().ok()?)
    }

    /// Reads a structure of these fields, and hands over those that are integers, but none of the
    /// structures in it.
    fn fields(&mut self, known: &[(u8, Type)], integer: &mut dyn FnMut(u8, i64)) -> Option<()> {
        const SHORT_DISTANCE: u32 = 4;
        let mut last = 0_u8;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let distance = head >> SHORT_DISTANCE;
            // Longer distances, which are written in another way, are between no two fields.
            let field = last.checked_add(distance).filter(|_| distance > 0)?;
            let (_, kind) = known.iter().find(|(number, _)| *number == field)?;
            match (kind, head & 0xf) {
                // The mark is the value.
                (Bool, 1 | 2) => {}
                (kind, mark) if mark == kind.mark() => {
                    if let Some(value) = self.value(*kind)? {
                        integer(field, value);
                    }
                }
                _ => return None,
            }
            last = field;
        }
    }

    /// Reads a value, and returns it if it is an integer.
    fn value(&mut self, kind: Type) -> Option<Option<i64>> {
        match kind {
            Bool => return None,
            I8 => self.byte().map(drop)?,
            I16 => {
                return i16::try_from(self.integer()?)
                    .ok()
                    .map(|it| Some(it.into()));
            }
            I32 => {
                return i32::try_from(self.integer()?)
                    .ok()
                    .map(|it| Some(it.into()));
            }
            I64 => return self.integer().map(Some),
            Binary => {
                let length = self.varint()?.try_into().ok()?;
                self.skip(length)?;
            }
            List(kind) => self.list(*kind)?,
            Struct(known) => self.fields(known, &mut |_, _| ())?,
        }
        Some(None)
    }

    fn list(&mut self, kind: Type) -> Option<()> {
        const LONG: u8 = 15;
        let head = self.byte()?;
        if head == 0 {
            return Some(());
        }
        let length = match head >> 4 {
            LONG => self.varint()?,
            short => short.into(),
        };
        // Each takes a byte at least, and no list here is of truth values.
        (head & 0xf == kind.mark()).then_some(())?;
        (0..length).try_for_each(|_| self.value(kind).map(drop))
    }

    fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.0 = self.0.get(length..)?;
        Some(())
    }
}

impl Type {
    /// The mark of a field or of a list's elements; a field that is a truth value has two.
    fn mark(self) -> u8 {
        match self {
            Bool => 2,
            I8 => 3,
            I16 => 4,
            I32 => 5,
            I64 => 6,
            Binary => 8,
            List(_) => 9,
            Struct(_) => 12,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of two bytes: a dictionary of one value.
    const DICTIONARY: [u8; 16] = [
        0x15, 4, 0x15, 4, 0x15, 4, 0x4c, 0x15, 2, 0x15, 0, 0x11, 0, 0, 7, 7,
    ];

    #[test]
    fn pages_are_read_one_after_the_other() {
        let page = &DICTIONARY[..];
        let check = |bytes: &[u8], expected| assert_eq!(are_known_pages(bytes), expected);
        check(&[], true);
        check(page, true);
        check(&[page, page].concat(), true);
        check(&[page, &[0x15]].concat(), false);
        check(&page[..15], false);
    }

    #[test]
    fn fields_of_other_types_are_refused() {
        // Two billion truth values: unknown; in the place of a size; in another structure.
        let list: &[u8] = &[0xf1, 0xff, 0xff, 0xff, 0xff, 7];
        let check = |start: &[u8]| assert!(!are_known_pages(&[start, list, &[0]].concat()));
        check(&[0x99]);
        check(&[0x15, 4, 0x19]);
        check(&[0x5c, 0x59]);
        // A field by its full number.
        assert!(!are_known_pages(&[0x05, 2, 4, 0x15, 4, 0x15, 0, 0]));
        // A size that fits in no 32 bits, and one below zero.
        assert!(!are_known_pages(&[0x35, 0x80, 0x80, 0x80, 0x80, 0x20, 0]));
        assert!(!are_known_pages(&[0x35, 1, 0]));
    }
}
