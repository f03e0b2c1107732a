//! The names of types and methods: ECMA-335, II.22 and II.24.

use super::signature::{MethodToken, Owner};
use crate::bytes::Bytes;

/// The metadata of a file.
pub(super) struct Metadata<'data> {
    strings: Bytes<'data>,
    tables: [Table<'data>; TABLES],
    /// Which heaps and tables have indices of four bytes.
    widths: Widths,
}

/// The tables up to that of nested types.
const TABLES: usize = 0x2a;
const TYPE_REF: usize = 0x01;
const TYPE_DEF: usize = 0x02;
const METHOD_DEF: usize = 0x06;
const MEMBER_REF: usize = 0x0a;
const TYPE_SPEC: usize = 0x1b;
const NESTED_CLASS: usize = 0x29;

#[derive(Clone, Copy)]
struct Table<'data> {
    rows: u32,
    row_size: usize,
    bytes: Bytes<'data>,
}

/// A column of a table.
#[derive(Clone, Copy)]
enum Column {
    /// A number of so many bytes.
    Fixed(usize),
    String,
    Guid,
    Blob,
    /// A row of this table.
    Row(usize),
    /// A row of one of these tables.
    RowOf(&'static [usize]),
}

use Column::{Blob, Fixed, Guid, Row, RowOf, String as Text};

const TYPE_DEF_OR_REF: Column = RowOf(&[TYPE_DEF, TYPE_REF, TYPE_SPEC]);
const METHOD_DEF_OR_REF: Column = RowOf(&[METHOD_DEF, MEMBER_REF]);
const HAS_CUSTOM_ATTRIBUTE: Column = RowOf(&[
    0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23,
    0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b,
]);
/// Two of the five tags are not used.
const CUSTOM_ATTRIBUTE_TYPE: Column = RowOf(&[METHOD_DEF, MEMBER_REF, 0x00, 0x00, 0x00]);
const IMPLEMENTATION: Column = RowOf(&[0x26, 0x23, 0x27]);

/// ECMA-335, II.22, by number of the table; empty where there is none.
const COLUMNS: [&[Column]; TABLES] = [
    &[Fixed(2), Text, Guid, Guid, Guid],
    &[RowOf(&[0x00, 0x1a, 0x23, TYPE_REF]), Text, Text],
    &[
        Fixed(4),
        Text,
        Text,
        TYPE_DEF_OR_REF,
        Row(0x04),
        Row(METHOD_DEF),
    ],
    &[Row(0x04)],
    &[Fixed(2), Text, Blob],
    &[Row(METHOD_DEF)],
    &[Fixed(4), Fixed(2), Fixed(2), Text, Blob, Row(0x08)],
    &[Row(0x08)],
    &[Fixed(2), Fixed(2), Text],
    &[Row(TYPE_DEF), TYPE_DEF_OR_REF],
    &[
        RowOf(&[TYPE_DEF, TYPE_REF, 0x1a, METHOD_DEF, TYPE_SPEC]),
        Text,
        Blob,
    ],
    &[Fixed(2), RowOf(&[0x04, 0x08, 0x17]), Blob],
    &[HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, Blob],
    &[RowOf(&[0x04, 0x08]), Blob],
    &[Fixed(2), RowOf(&[TYPE_DEF, METHOD_DEF, 0x20]), Blob],
    &[Fixed(2), Fixed(4), Row(TYPE_DEF)],
    &[Fixed(4), Row(0x04)],
    &[Blob],
    &[Row(TYPE_DEF), Row(0x14)],
    &[Row(0x14)],
    &[Fixed(2), Text, TYPE_DEF_OR_REF],
    &[Row(TYPE_DEF), Row(0x17)],
    &[Row(0x17)],
    &[Fixed(2), Text, Blob],
    &[Fixed(2), Row(METHOD_DEF), RowOf(&[0x14, 0x17])],
    &[Row(TYPE_DEF), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF],
    &[Text],
    &[Blob],
    &[Fixed(2), RowOf(&[0x04, METHOD_DEF]), Text, Row(0x1a)],
    &[Fixed(4), Row(0x04)],
    &[Fixed(4), Fixed(4)],
    &[Fixed(4)],
    &[Fixed(4), Fixed(8), Fixed(4), Blob, Text, Text],
    &[Fixed(4)],
    &[Fixed(12)],
    &[Fixed(8), Fixed(4), Blob, Text, Text, Blob],
    &[Fixed(4), Row(0x23)],
    &[Fixed(12), Row(0x23)],
    &[Fixed(4), Text, Blob],
    &[Fixed(4), Fixed(4), Text, Text, IMPLEMENTATION],
    &[Fixed(4), Fixed(4), Text, IMPLEMENTATION],
    &[Row(TYPE_DEF), Row(TYPE_DEF)],
];

struct Widths {
    heaps: u8,
    rows: [u32; 64],
}

impl Widths {
    fn size(&self, column: Column) -> usize {
        let is_wide = match column {
            Fixed(size) => return size,
            Text => self.heaps & 1 != 0,
            Guid => self.heaps & 2 != 0,
            Blob => self.heaps & 4 != 0,
            Row(table) => self.rows[table] >= 1 << 16,
            RowOf(tables) => {
                let tag = tag_bits(tables);
                tables
                    .iter()
                    .any(|&table| self.rows[table] >= 1 << (16 - tag))
            }
        };
        if is_wide { 4 } else { 2 }
    }
}

/// So many low bits of a number tell which of these tables it is of.
fn tag_bits(tables: &[usize]) -> u32 {
    tables.len().next_power_of_two().trailing_zeros()
}

impl<'data> Metadata<'data> {
    const SIGNATURE: u32 = u32::from_le_bytes(*b"BSJB");
    const VERSION_LENGTH: usize = 12;
    const STREAMS: usize = 16;

    pub(super) fn parse(root: Bytes<'data>) -> Option<Self> {
        (root.u32(0)? == Self::SIGNATURE).then_some(())?;
        let version = root.u32(Self::VERSION_LENGTH)? as usize;
        let streams = Self::STREAMS.checked_add(version)?;
        let count = root.u16(streams.checked_add(2)?)?;
        let (mut strings, mut tables) = (None, None);
        let mut at = streams.checked_add(4)?;
        for _ in 0..count {
            let start = root.u32(at)? as usize;
            let size = root.u32(at + 4)? as usize;
            let name = root.text(at + 8)?;
            let bytes = root.0.get(start..start.checked_add(size)?).map(Bytes);
            match name {
                b"#Strings" => strings = bytes,
                b"#~" => tables = bytes,
                _ => {}
            }
            at += 8 + (name.len() + 1).next_multiple_of(4);
        }
        Self::of_streams(strings?, tables?)
    }

    fn of_streams(strings: Bytes<'data>, stream: Bytes<'data>) -> Option<Self> {
        const ROWS: usize = 24;
        /// The rows of unneeded tables are counted, too.
        const HAS_EXTRA_DATA: u8 = 0x40;
        let heaps = stream.u8(6)?;
        let valid = stream.u64(8)?;
        let mut widths = Widths {
            heaps,
            rows: [0; 64],
        };
        let mut at = ROWS;
        for (table, rows) in widths.rows.iter_mut().enumerate() {
            if valid >> table & 1 != 0 {
                *rows = stream.u32(at)?;
                at += 4;
            }
        }
        if heaps & HAS_EXTRA_DATA != 0 {
            at += 4;
        }
        let mut tables = [Table {
            rows: 0,
            row_size: 0,
            bytes: Bytes(&[]),
        }; TABLES];
        for (number, table) in tables.iter_mut().enumerate() {
            let columns = COLUMNS[number].iter();
            let row_size = columns.map(|&column| widths.size(column)).sum();
            let rows = widths.rows[number];
            *table = Table {
                rows,
                row_size,
                bytes: stream.from(at)?,
            };
            at = at.checked_add(row_size.checked_mul(rows as usize)?)?;
        }
        (at <= stream.0.len()).then_some(Self {
            strings,
            tables,
            widths,
        })
    }

    /// A number in a table, whose rows count from 1.
    fn value(&self, table: usize, row: u32, column: usize) -> Option<u32> {
        let Table {
            rows,
            row_size,
            bytes,
        } = self.tables[table];
        (1..=rows).contains(&row).then_some(())?;
        let columns = COLUMNS[table];
        let before = columns.get(..column)?.iter();
        let offset: usize = before.map(|&column| self.widths.size(column)).sum();
        let is_wide = self.widths.size(*columns.get(column)?) == 4;
        bytes.index((row - 1) as usize * row_size + offset, is_wide)
    }

    fn text(&self, table: usize, row: u32, column: usize) -> Option<&'data str> {
        const LONGEST: usize = 1024;
        let text = self
            .strings
            .text(self.value(table, row, column)? as usize)?;
        str::from_utf8(text.get(..LONGEST).unwrap_or(text)).ok()
    }

    /// The name of a method: `Namespace.Type+Nested::Method`. `None` if it is of another file.
    pub(super) fn method(&self, method: MethodToken) -> Option<Vec<u8>> {
        const TYPE_DEF_TOKEN: u32 = 0;
        let MethodToken {
            row,
            is_reference,
            owner,
        } = method;
        let (name, owner) = match (is_reference, owner) {
            (false, owner) => {
                let own = self.type_of_method(row)?;
                let is_own = match owner {
                    Owner::OfMethod => true,
                    Owner::Token(token) => token == own << 2 | TYPE_DEF_TOKEN,
                    Owner::Elsewhere => false,
                };
                is_own.then_some(())?;
                (self.text(METHOD_DEF, row, 3)?, self.type_name(own, 0)?)
            }
            (true, Owner::Token(token)) => {
                (self.text(MEMBER_REF, row, 1)?, self.type_of_token(token)?)
            }
            (true, _) => return None,
        };
        Some(format!("{owner}::{name}").into_bytes())
    }

    /// The row of the type with a method: the last one whose methods begin no later.
    fn type_of_method(&self, method: u32) -> Option<u32> {
        const FIRST_METHOD: usize = 5;
        let (mut first, mut last) = (1, self.tables[TYPE_DEF].rows.checked_add(1)?);
        while first < last {
            let middle = first.midpoint(last);
            match self.value(TYPE_DEF, middle, FIRST_METHOD)? <= method {
                true => first = middle + 1,
                false => last = middle,
            }
        }
        first.checked_sub(1)
    }

    fn type_name(&self, row: u32, depth: u32) -> Option<String> {
        const DEEPEST: u32 = 32;
        let name = self.text(TYPE_DEF, row, 1)?;
        if depth < DEEPEST
            && let Some(outer) = self.enclosing(row)
        {
            return Some(format!("{}+{name}", self.type_name(outer, depth + 1)?));
        }
        Some(with_namespace(self.text(TYPE_DEF, row, 2)?, name))
    }

    /// The type that a nested one is in: the table is sorted.
    fn enclosing(&self, nested: u32) -> Option<u32> {
        let (mut first, mut last) = (1, self.tables[NESTED_CLASS].rows.checked_add(1)?);
        while first < last {
            let middle = first.midpoint(last);
            match self.value(NESTED_CLASS, middle, 0)? < nested {
                true => first = middle + 1,
                false => last = middle,
            }
        }
        (self.value(NESTED_CLASS, first, 0)? == nested)
            .then(|| self.value(NESTED_CLASS, first, 1))?
    }

    /// The name of a type that is defined in the file, or in another one.
    fn type_of_token(&self, token: u32) -> Option<String> {
        match (token & 0b11, token >> 2) {
            (0, row) => self.type_name(row, 0),
            (1, row) => {
                let (name, namespace) =
                    (self.text(TYPE_REF, row, 1)?, self.text(TYPE_REF, row, 2)?);
                Some(with_namespace(namespace, name))
            }
            _ => None,
        }
    }
}

fn with_namespace(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        _ => format!("{namespace}.{name}"),
    }
}
