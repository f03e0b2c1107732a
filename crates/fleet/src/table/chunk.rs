//! A column of a row group as pages: its dictionary, and the places of its values in there.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use zstd_safe::CCtx;

use super::dictionary::{Dictionary, Value};
use super::hybrid::{width, write_numbers};
use super::nested::Nested;

/// Makes the pages of a file.
pub(super) struct Packer {
    compression: Compression,
    context: CCtx<'static>,
    /// For packed bytes.
    buffer: Vec<u8>,
}

impl Packer {
    /// Of zstd's compression.
    pub(super) const LEVEL: i32 = 3;

    /// With this compression, as files say it.
    pub(super) fn new(compression: Compression) -> Result<Self> {
        let context = CCtx::try_create();
        let context = context.ok_or_else(|| ParquetError::General("no memory to pack".into()))?;
        Ok(Self {
            compression,
            context,
            buffer: Vec::new(),
        })
    }

    /// The bytes of a column, and what the file says of it.
    pub(super) fn chunk<V: Value>(
        &mut self,
        described: ColumnDescPtr,
        dictionary: &Dictionary<V>,
        column: &Nested<u32>,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let values = column.definition.len().max(column.values.len());
        let mut chunk = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut chunk);
        let buf = self.packed(dictionary.plain())?;
        let page = Page::DictionaryPage {
            buf,
            num_values: dictionary.len(),
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let first = pages.write_page(CompressedPage::new(page, dictionary.plain().len()))?;
        let data = data(&described, dictionary.len(), column);
        let page = Page::DataPage {
            buf: self.packed(&data)?,
            num_values: values as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let second = pages.write_page(CompressedPage::new(page, data.len()))?;
        let unpacked = first.uncompressed_size + second.uncompressed_size;
        let encodings = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        let metadata = ColumnChunkMetaData::builder(described)
            .set_compression(self.compression)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(chunk.bytes_written() as i64)
            .set_total_uncompressed_size(unpacked as i64)
            .set_num_values(values as i64)
            .set_dictionary_page_offset(Some(first.offset as i64))
            .set_data_page_offset(second.offset as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: chunk.bytes_written() as u64,
            rows_written: rows(column, values) as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((chunk.into_inner()?.into(), close))
    }

    fn packed(&mut self, bytes: &[u8]) -> Result<Bytes> {
        let most = zstd_safe::compress_bound(bytes.len());
        if self.buffer.len() < most {
            self.buffer.resize(most, 0);
        }
        let length = self
            .context
            .compress(&mut self.buffer[..], bytes, Self::LEVEL);
        let failed = |code| ParquetError::General(zstd_safe::get_error_name(code).to_owned());
        Ok(Bytes::copy_from_slice(
            &self.buffer[..length.map_err(failed)?],
        ))
    }
}

/// How many rows a column is of.
fn rows(column: &Nested<u32>, values: usize) -> usize {
    match &column.repetition[..] {
        [] => values,
        levels => levels.iter().filter(|&&level| level == 0).count(),
    }
}

/// The data page of a column with so many distinct values: levels, then places.
fn data(described: &ColumnDescriptor, distinct: u32, column: &Nested<u32>) -> Vec<u8> {
    let mut data = Vec::new();
    let levels = [
        (described.max_rep_level(), &column.repetition),
        (described.max_def_level(), &column.definition),
    ];
    for (most, levels) in levels.into_iter().filter(|(most, _)| *most > 0) {
        let start = data.len();
        data.extend([0; 4]);
        write_numbers(levels, width(most.unsigned_abs().into()), &mut data);
        let length = (data.len() - start - 4) as u32;
        data[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
    let bits = width(distinct.saturating_sub(1));
    data.push(bits as u8);
    write_numbers(&column.values, bits, &mut data);
    data
}
