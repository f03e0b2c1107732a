//! Row groups of files, which may be of anybody: what is read of them is bounded.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::nested::Nested;
use super::pages::Pages;
use super::schema::Table;
use super::thrift::is_known_file;

/// The most rows that a row group may have.
const MOST_ROWS: usize = 1 << 20;

/// The most values that a column of a row group may have.
pub(super) const MOST_VALUES: usize = 1 << 22;

/// How many values may be read of any file, and how many more for each of its bytes: each takes
/// time.
const VALUES_PER_FILE: usize = 16 * MOST_VALUES;
const VALUES_PER_BYTE: usize = 256;

/// The row groups of a file.
pub(crate) struct Groups {
    file: Bytes,
    reader: SerializedFileReader<Bytes>,
    /// How many values may still be read.
    left: Cell<usize>,
}

impl Groups {
    /// Reads where they are. The file's own schema does not count: it has these columns, or is
    /// damaged.
    pub(crate) fn of(table: Table, file: Bytes) -> Result<Self> {
        if !is_known_file(&file) {
            return Err(ParquetError::General(
                "its Parquet footer is missing or not as prof writes it".into(),
            ));
        }
        let options = ReadOptionsBuilder::new();
        let options = options.with_parquet_schema(table.descriptor()).build();
        let values = file.len().saturating_mul(VALUES_PER_BYTE);
        Ok(Self {
            reader: SerializedFileReader::new_with_options(file.clone(), options)?,
            file,
            left: Cell::new(values.saturating_add(VALUES_PER_FILE)),
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// How many rows one has.
    pub(crate) fn rows(&self, group: usize) -> usize {
        let rows = self.reader.metadata().row_group(group).num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    /// The smallest and the largest value of a column of integers in a group, if known.
    pub(super) fn range(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let index = self.index(column).ok()?;
        let group = self.reader.metadata().row_group(group);
        match group.column(index).statistics()? {
            Statistics::Int64(range) => Some((*range.min_opt()?, *range.max_opt()?)),
            _ => None,
        }
    }

    fn index(&self, column: &str) -> Result<usize> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut columns = schema.columns().iter();
        columns
            .position(|known| known.path().string() == column)
            .ok_or_else(|| ParquetError::General(format!("there is no column {column}")))
    }

    /// The values of a column that is neither optional nor repeated.
    pub(super) fn flat<T: DataType>(&self, group: usize, column: &str) -> Result<Vec<T::T>> {
        let values = self.nested::<T>(group, column)?.values;
        match values.len() == self.rows(group) {
            true => Ok(values),
            false => Err(ParquetError::General(format!("{column} has holes"))),
        }
    }

    pub(super) fn nested<T: DataType>(&self, group: usize, column: &str) -> Result<Nested<T::T>> {
        let rows = self.rows(group);
        let most = self.left.get().min(MOST_VALUES);
        if rows > MOST_ROWS.min(most) {
            return Err(ParquetError::General(
                "a row group has too many rows".into(),
            ));
        }
        let group = self.reader.metadata().row_group(group);
        let described = group.column(self.index(column)?);
        let pages = Box::new(Pages::new(&self.file, described, most)?);
        let mut reader = ColumnReaderImpl::<T>::new(described.column_descr_ptr(), pages);
        let mut read = Nested::default();
        let mut seen = 0;
        while seen < rows {
            let (definition, repetition) = (&mut read.definition, &mut read.repetition);
            let (more, _, _) = reader.read_records(
                rows - seen,
                Some(definition),
                Some(repetition),
                &mut read.values,
            )?;
            if more == 0 {
                return Err(ParquetError::EOF(format!("{column} ends early")));
            }
            seen += more;
        }
        let values = read.values.len().max(read.definition.len());
        self.left.set(self.left.get().saturating_sub(values));
        Ok(read)
    }
}

/// Texts from columns, each distinct one once.
#[derive(Default)]
pub(crate) struct Texts {
    known: HashMap<Vec<u8>, Arc<str>>,
    bytes: usize,
}

impl Texts {
    /// How long all of them are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn of(&mut self, bytes: &ByteArray) -> Arc<str> {
        let bytes = bytes.data();
        if let Some(known) = self.known.get(bytes) {
            return Arc::clone(known);
        }
        let new: Arc<str> = String::from_utf8_lossy(bytes).into();
        self.bytes += bytes.len();
        self.known.insert(bytes.to_vec(), Arc::clone(&new));
        new
    }
}
