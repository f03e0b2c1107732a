//! The pages of a column, unpacked.
//!
//! A file may be of anybody who can write to the bucket. Behind this, the crate `parquet` decodes
//! values; some pages make it panic, or take any amount of memory. Only such pages go on as prof
//! writes them, within bounds.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use zstd_safe::DCtx;

use super::thrift::are_known_pages;

/// The most bytes that the pages of a column take, unpacked.
const MOST_BYTES: usize = 256 << 20;

/// Stands behind the texts of a page, each of which follows its length. Where one more is read than
/// there are, it ends far beyond the page, which is an error; without a length, there is a panic.
const NO_LENGTH: [u8; 4] = [0xff; 4];

/// The pages of a column of a row group.
pub(super) struct Pages {
    packed: SerializedPageReader<Bytes>,
    compression: Compression,
    kind: Type,
    /// How many lists of levels precede the values of a page.
    levels: usize,
    unpacker: DCtx<'static>,
    has_dictionary: bool,
    bytes_left: usize,
    values_left: usize,
}

impl Pages {
    /// Of this column of the file, as long as they hold no more than so many values.
    pub(super) fn new(file: &Bytes, column: &ColumnChunkMetaData, values: usize) -> Result<Self> {
        let start = column.dictionary_page_offset();
        let start = start.unwrap_or_else(|| column.data_page_offset());
        if start < 0 || column.compressed_size() < 0 {
            return Err(damaged("a column begins before the file"));
        }
        let (start, length) = column.byte_range();
        let end = start.saturating_add(length);
        let bytes = file.get(start as usize..end as usize);
        if !bytes.is_some_and(are_known_pages) {
            return Err(damaged("a page is of another kind than prof writes"));
        }
        let described = column.column_descr();
        // They are unpacked here, where there is a bound.
        let as_they_are = column.clone().into_builder();
        let as_they_are = as_they_are
            .set_compression(Compression::UNCOMPRESSED)
            .build()?;
        Ok(Self {
            packed: SerializedPageReader::new(Arc::new(file.clone()), &as_they_are, 0, None)?,
            compression: column.compression(),
            kind: column.column_type(),
            levels: usize::from(described.max_rep_level() > 0)
                + usize::from(described.max_def_level() > 0),
            unpacker: DCtx::try_create().ok_or_else(|| damaged("no memory to unpack it"))?,
            has_dictionary: false,
            bytes_left: MOST_BYTES,
            values_left: values,
        })
    }

    fn checked(&mut self, page: Page) -> Result<Page> {
        match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => {
                self.has_dictionary = true;
                let bytes = self.unpacked(&buf, num_values)?;
                Ok(Page::DictionaryPage {
                    buf: self.values(bytes, 0)?,
                    num_values,
                    encoding,
                    is_sorted,
                })
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics,
            } if self.is_known(encoding) => {
                let bytes = self.unpacked(&buf, num_values)?;
                Ok(Page::DataPage {
                    buf: match encoding {
                        Encoding::PLAIN => self.values(bytes, self.levels)?,
                        _ => bytes.into(),
                    },
                    num_values,
                    encoding,
                    def_level_encoding: Encoding::RLE,
                    rep_level_encoding: Encoding::RLE,
                    statistics,
                })
            }
            _ => Err(damaged("a page is encoded in another way than prof does")),
        }
    }

    /// Plain values, behind so many lists of levels. Texts must be whole.
    fn values(&self, mut bytes: Vec<u8>, levels: usize) -> Result<Bytes> {
        if self.kind == Type::BYTE_ARRAY {
            let mut rest = Some(&bytes[..]);
            for _ in 0..levels {
                rest = rest.and_then(after_item);
            }
            while rest.is_some_and(|rest| !rest.is_empty()) {
                rest = rest.and_then(after_item);
            }
            rest.ok_or_else(|| damaged("a text ends beyond its page"))?;
            bytes.extend_from_slice(&NO_LENGTH);
        }
        Ok(bytes.into())
    }

    fn is_known(&self, encoding: Encoding) -> bool {
        match encoding {
            Encoding::PLAIN => true,
            Encoding::RLE_DICTIONARY => self.has_dictionary,
            _ => false,
        }
    }

    fn unpacked(&mut self, packed: &Bytes, values: u32) -> Result<Vec<u8>> {
        let left = self.values_left.checked_sub(values as usize);
        self.values_left = left.ok_or_else(|| damaged("a column has too many values"))?;
        let large = || damaged("a column is too large");
        let bytes = match self.compression {
            Compression::UNCOMPRESSED => packed.to_vec(),
            Compression::ZSTD(_) => {
                let size = zstd_safe::get_frame_content_size(packed).ok().flatten();
                // Zeroes that nothing is written to take no memory.
                let size = size.unwrap_or(self.bytes_left as u64);
                if size > self.bytes_left as u64 {
                    return Err(large());
                }
                let mut bytes = vec![0; size as usize];
                let unpacked = self.unpacker.decompress(&mut bytes[..], packed);
                let length = unpacked.map_err(|code| damaged(zstd_safe::get_error_name(code)))?;
                bytes.truncate(length);
                bytes
            }
            _ => return Err(damaged("a column is compressed by other means than zstd")),
        };
        self.bytes_left = self.bytes_left.checked_sub(bytes.len()).ok_or_else(large)?;
        Ok(bytes)
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.packed.get_next_page()?;
        page.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.packed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.packed.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// What follows an item that follows its length.
fn after_item(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

fn damaged(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}
