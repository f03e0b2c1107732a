//! Columns as vectors, and new files of them.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use rustc_hash::FxHashMap;

use super::schema::{Table, VERSION};

/// Rows in a row group: what a reader holds in memory at a time, and may leave out by its times.
pub(super) const GROUP_ROWS: usize = 1 << 16;

/// A file as it is written, in memory.
pub(super) struct NewFile {
    writer: SerializedFileWriter<Vec<u8>>,
}

impl NewFile {
    pub(super) fn new(table: Table) -> Result<Self> {
        const LEVEL: i32 = 3;
        let version = KeyValue::new("prof.schema".to_owned(), VERSION.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled("time".into(), EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![version]))
            .set_created_by(concat!("prof ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), table.schema(), Arc::new(properties))?;
        Ok(Self { writer })
    }

    /// Writes a row group.
    pub(super) fn group(
        &mut self,
        fill: impl FnOnce(&mut NewColumns<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut columns = NewColumns(self.writer.next_row_group()?);
        fill(&mut columns)?;
        columns.0.close()?;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Bytes> {
        Ok(self.writer.into_inner()?.into())
    }
}

/// The columns of a row group, which are written in the schema's order.
pub(super) struct NewColumns<'a>(SerializedRowGroupWriter<'a, Vec<u8>>);

impl NewColumns<'_> {
    /// Writes a column that is neither optional nor repeated.
    pub(super) fn flat<T: DataType>(&mut self, values: impl Iterator<Item = T::T>) -> Result<()> {
        let values: Vec<T::T> = values.collect();
        self.write::<T>(&values, None, None)
    }

    pub(super) fn nested<T: DataType>(&mut self, column: &Nested<T::T>) -> Result<()> {
        let repetition = (!column.repetition.is_empty()).then_some(&column.repetition[..]);
        self.write::<T>(&column.values, Some(&column.definition), repetition)
    }

    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        definition: Option<&[i16]>,
        repetition: Option<&[i16]>,
    ) -> Result<()> {
        let column = self.0.next_column()?;
        let mut column =
            column.ok_or_else(|| ParquetError::General("more columns than the schema".into()))?;
        column
            .typed::<T>()
            .write_batch(values, definition, repetition)?;
        column.close()
    }
}

/// A column that is optional or repeated: its values, and for each place where one could be
/// whether there is one (definition) and whether it goes on in the same row (repetition).
#[derive(Clone, Debug)]
pub(super) struct Nested<T> {
    pub(super) values: Vec<T>,
    pub(super) definition: Vec<i16>,
    pub(super) repetition: Vec<i16>,
}

impl<T> Default for Nested<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
        }
    }
}

impl<T> Nested<T> {
    /// An empty column with room for so many values.
    pub(super) fn with_capacity(places: usize) -> Self {
        Self {
            values: Vec::with_capacity(places),
            definition: Vec::with_capacity(places),
            repetition: Vec::with_capacity(places),
        }
    }

    /// A column of optional values.
    pub(super) fn optional(values: impl Iterator<Item = Option<T>>) -> Self {
        let mut column = Self::default();
        for value in values {
            column.definition.push(value.is_some().into());
            column.values.extend(value);
        }
        column
    }

    /// Adds the list of one row. Elements are `None` only in columns that are optional in a list.
    pub(super) fn push_list(&mut self, list: impl Iterator<Item = Option<T>>, deepest: i16) {
        let start = self.definition.len();
        for value in list {
            let depth = deepest - i16::from(value.is_none());
            self.repetition.push((self.definition.len() > start).into());
            self.definition.push(depth);
            self.values.extend(value);
        }
        if self.definition.len() == start {
            self.repetition.push(0);
            self.definition.push(0);
        }
    }

    /// The lists of all rows; `deepest` is the level of values that are there.
    pub(super) fn into_lists(self, deepest: i16) -> Vec<Vec<Option<T>>> {
        let mut lists: Vec<Vec<Option<T>>> = Vec::new();
        let mut values = self.values.into_iter();
        for (repetition, definition) in self.repetition.into_iter().zip(self.definition) {
            if repetition == 0 {
                lists.push(Vec::new());
            }
            if definition == 0 {
                continue;
            }
            let value = (definition == deepest).then(|| values.next()).flatten();
            if let Some(list) = lists.last_mut() {
                list.push(value);
            }
        }
        lists
    }
}

/// Texts as columns have them. They are known by where they are: to hash each would take longer
/// than to make those anew that are there twice.
#[derive(Default)]
pub(super) struct NewTexts<'a> {
    known: FxHashMap<*const str, ByteArray>,
    /// The last one: many rows that follow one another have the same.
    last: Option<(&'a str, ByteArray)>,
}

impl<'a> NewTexts<'a> {
    pub(super) fn of(&mut self, text: &'a str) -> ByteArray {
        if let Some((last, known)) = &self.last
            && std::ptr::eq(*last, text)
        {
            return known.clone();
        }
        let new = || ByteArray::from(text.as_bytes().to_vec());
        let known = self
            .known
            .entry(std::ptr::from_ref(text))
            .or_insert_with(new)
            .clone();
        self.last = Some((text, known.clone()));
        known
    }
}

/// The 16 bytes of a number.
pub(super) fn number(bytes: &FixedLenByteArray) -> [u8; 16] {
    let mut number = [0; 16];
    for (to, from) in number.iter_mut().zip(bytes.data()) {
        *to = *from;
    }
    number
}

/// Numbers as columns have them, which share their memory.
pub(super) fn fixed(
    numbers: impl Iterator<Item = [u8; 16]>,
) -> impl Iterator<Item = FixedLenByteArray> {
    let bytes: Vec<u8> = numbers.flatten().collect();
    let bytes = Bytes::from(bytes);
    let starts = (0..bytes.len()).step_by(16);
    starts.map(move |start| ByteArray::from(bytes.slice(start..start + 16)).into())
}
