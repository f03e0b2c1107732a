//! New files of columns.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{DataType, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::SchemaDescPtr;

use super::chunk::Packer;
use super::dictionary::{Dictionary, Value};
use super::nested::Nested;
use super::schema::{Table, VERSION};

/// Rows in a row group: what a reader holds in memory at a time, and may leave out by its times.
pub(super) const GROUP_ROWS: usize = 1 << 16;

/// A file as it is written, in memory.
pub(super) struct NewFile {
    writer: SerializedFileWriter<Vec<u8>>,
    schema: SchemaDescPtr,
    packer: Packer,
}

impl NewFile {
    pub(super) fn new(table: Table) -> Result<Self> {
        let version = KeyValue::new("prof.schema".to_owned(), VERSION.to_owned());
        let compression = Compression::ZSTD(ZstdLevel::try_new(Packer::LEVEL)?);
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled("time".into(), EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![version]))
            .set_created_by(concat!("prof ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), table.schema(), Arc::new(properties))?;
        Ok(Self {
            writer,
            schema: table.descriptor(),
            packer: Packer::new(compression)?,
        })
    }

    /// Writes a row group.
    pub(super) fn group(
        &mut self,
        fill: impl FnOnce(&mut NewColumns<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut columns = NewColumns {
            group: self.writer.next_row_group()?,
            schema: &self.schema,
            next: 0,
            packer: &mut self.packer,
        };
        fill(&mut columns)?;
        columns.group.close()?;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Bytes> {
        Ok(self.writer.into_inner()?.into())
    }
}

/// The columns of a row group, which are written in the schema's order.
pub(super) struct NewColumns<'a> {
    group: SerializedRowGroupWriter<'a, Vec<u8>>,
    schema: &'a SchemaDescPtr,
    /// The number of the next column.
    next: usize,
    packer: &'a mut Packer,
}

impl NewColumns<'_> {
    /// Writes a column that is neither optional nor repeated.
    pub(super) fn flat<V: Value>(&mut self, values: impl Iterator<Item = V>) -> Result<()> {
        let mut dictionary = Dictionary::default();
        let column = Nested {
            values: values.map(|value| dictionary.place(value)).collect(),
            ..Nested::default()
        };
        self.nested(&dictionary, &column)
    }

    /// Writes a column that is optional.
    pub(super) fn optional<V: Value>(
        &mut self,
        values: impl Iterator<Item = Option<V>>,
    ) -> Result<()> {
        let mut dictionary = Dictionary::default();
        let mut column = Nested::default();
        for value in values {
            column.definition.push(value.is_some().into());
            let place = value.map(|value| dictionary.place(value));
            column.values.extend(place);
        }
        self.nested(&dictionary, &column)
    }

    /// Writes a column of lists.
    pub(super) fn lists<V: Value>(
        &mut self,
        rows: impl Iterator<Item = impl Iterator<Item = V>>,
    ) -> Result<()> {
        let mut dictionary = Dictionary::default();
        let mut column = Nested::default();
        for list in rows {
            column.push_list(list.map(|value| Some(dictionary.place(value))), 1);
        }
        self.nested(&dictionary, &column)
    }

    /// Writes a column without a dictionary: that of truth values can have none, and that of times
    /// says in what range they are.
    pub(super) fn plain<T: DataType>(&mut self, column: &Nested<T::T>) -> Result<()> {
        self.next += 1;
        let writer = self.group.next_column()?;
        let mut writer = writer.ok_or_else(too_many)?;
        let [definition, repetition] = [&column.definition, &column.repetition]
            .map(|levels| (!levels.is_empty()).then_some(&levels[..]));
        let typed = writer.typed::<T>();
        typed.write_batch(&column.values, definition, repetition)?;
        writer.close()
    }

    /// Writes a column whose values are places in a dictionary.
    pub(super) fn nested<V: Value>(
        &mut self,
        dictionary: &Dictionary<V>,
        column: &Nested<u32>,
    ) -> Result<()> {
        if self.next == self.schema.num_columns() {
            return Err(too_many());
        }
        let described = self.schema.column(self.next);
        self.next += 1;
        let (chunk, close) = self.packer.chunk(described, dictionary, column)?;
        self.group.append_column(&chunk, close)
    }
}

fn too_many() -> ParquetError {
    ParquetError::General("more columns than the schema".into())
}

/// The 16 bytes of a number.
pub(super) fn number(bytes: &FixedLenByteArray) -> [u8; 16] {
    let mut number = [0; 16];
    for (to, from) in number.iter_mut().zip(bytes.data()) {
        *to = *from;
    }
    number
}
