//! Raw records, in the file's order.

use std::ops::Range;

use prof_filemap::MappedFile;

use super::chunks::{Chunks, RecordPosition};
use super::file::{MAGIC, Opened};
use super::unpack::{Damaged, Unpacker};
use crate::abi::record_type;
use crate::bytes::Bytes;
use crate::header::RecordHeader;

/// The bytes of a recording, and how far they were read.
#[derive(Debug)]
pub(super) struct Source {
    file: MappedFile,
    /// The records that are left, as a range of the file.
    data: Range<usize>,
    chunks: Chunks,
    /// The chunk that is being read, and how far it was.
    open_chunk: Option<RecordPosition>,
    unpacker: Option<Unpacker>,
    /// The start of a record that continues in the next chunk.
    cut_record: Vec<u8>,
    /// The zstd stream cannot be read on.
    unpackable: bool,
    truncated: bool,
    /// Whether another recording follows.
    followed: bool,
    allowance: Allowance,
    too_large: bool,
}

/// The limits on decompressed records. A few bytes can hold millions of records, each of which a
/// reader may have to store.
#[derive(Debug)]
struct Allowance {
    records: u64,
    bytes: u64,
}

impl Allowance {
    /// The base, and the addition for each byte of the file: even the times of equal samples, a few
    /// bits each, take more space than that.
    const RECORDS: (u64, u64) = (4_000_000, 1);
    const BYTES: (u64, u64) = (1 << 30, 256);

    fn new(file_size: usize) -> Self {
        let of = |(fixed, per_byte)| (file_size as u64).saturating_mul(per_byte) + fixed;
        Self {
            records: of(Self::RECORDS),
            bytes: of(Self::BYTES),
        }
    }

    /// Whether another record of this many bytes is too much.
    fn is_spent(&mut self, size: usize) -> bool {
        let left = (
            self.records.checked_sub(1),
            self.bytes.checked_sub(size as u64),
        );
        let (Some(records), Some(bytes)) = left else {
            return true;
        };
        *self = Self { records, bytes };
        false
    }
}

impl Source {
    /// More unpacked bytes than this are not held for the sake of order.
    const MOST_UNPACKED: usize = 256 << 20;

    pub(super) fn new(file: MappedFile, opened: &Opened) -> Self {
        let allowance = Allowance::new(file.len());
        Self {
            file,
            data: opened.data.clone(),
            chunks: Chunks::default(),
            open_chunk: None,
            unpacker: None,
            cut_record: Vec::new(),
            unpackable: true,
            truncated: opened.truncated,
            followed: opened.followed,
            allowance,
            too_large: false,
        }
    }

    /// Bytes of the file that are left.
    pub(super) fn bytes_left(&self) -> u64 {
        self.data.len() as u64
    }

    /// Reads these records next. Earlier ones must no longer be needed.
    pub(super) fn go_on(&mut self, records: MappedFile) {
        self.data = 0..records.len();
        self.file = records;
    }

    /// Whether the rest was left out, because more would come out of it than a file of this size
    /// should hold.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Whether something is missing, as far as it was read.
    pub(super) fn truncated(&self) -> bool {
        self.truncated
    }

    /// Whether another recording follows this one, as far as it was read.
    pub(super) fn followed(&self) -> bool {
        self.followed
    }

    /// Whether records have to be let go, or memory would grow without bounds.
    pub(super) fn holds_too_much(&self) -> bool {
        self.chunks.size() > Self::MOST_UNPACKED
    }

    /// The next record, whose place must be [`release`](Self::release)d some time. Compressed
    /// records yield their content; those with trailing data are skipped.
    pub(super) fn next(&mut self) -> Option<RecordPosition> {
        loop {
            if let Some(place) = self.next_in_chunk() {
                self.chunks.retain(place.chunk);
                return Some(place);
            }
            if self.unpack() {
                continue;
            }
            let offset = self.data.start;
            let Some(header) = self.take_from_file() else {
                self.truncated |= !self.cut_record.is_empty();
                return None;
            };
            let record = offset..self.data.start;
            match header.kind {
                record_type::COMPRESSED => self.feed(record, RecordHeader::SIZE),
                record_type::COMPRESSED2 => self.feed(record, RecordHeader::SIZE + 8),
                record_type::AUXTRACE | record_type::HEADER_TRACING_DATA => {
                    self.skip_trailing(header, record);
                }
                _ => return Some(RecordPosition::in_file(offset)),
            }
        }
    }

    /// The bytes of a record and, if it is invalid, the bytes after it.
    pub(super) fn record(&self, place: RecordPosition) -> &[u8] {
        let bytes = match place.chunk {
            RecordPosition::FILE => &self.file,
            number => self.chunks.bytes(number),
        };
        let record = bytes.get(place.offset..).unwrap_or_default();
        let size = RecordHeader::parse(record).map_or(0, |header| header.size.into());
        record.get(..size).unwrap_or(record)
    }

    /// The record is not needed any more.
    pub(super) fn release(&mut self, place: RecordPosition) {
        self.chunks.release(place.chunk);
    }

    /// The next record of the file, without moving on.
    pub(super) fn peek_file(&self) -> Option<(RecordHeader, &[u8])> {
        let rest = self.file.get(self.data.clone())?;
        let header = RecordHeader::parse(rest)?;
        Some((header, rest.get(..header.size.into())?))
    }

    /// Moves past the record that the file has next.
    pub(super) fn take_from_file(&mut self) -> Option<RecordHeader> {
        if self.data.is_empty() {
            return None;
        }
        // In pipe form, nothing else says where a recording ends. No record begins so.
        let rest = self.file.get(self.data.clone()).unwrap_or_default();
        if rest.starts_with(MAGIC) {
            self.followed = true;
            self.data.start = self.data.end;
            return None;
        }
        let Some((header, record)) = self.peek_file() else {
            // An invalid header, or a record that is cut off: nothing after it can be found.
            self.truncated = true;
            self.data.start = self.data.end;
            return None;
        };
        self.data.start += record.len();
        Some(header)
    }

    /// Skips the data after these records that their size does not include.
    pub(super) fn skip_trailing(&mut self, header: RecordHeader, record: Range<usize>) {
        let body = self
            .file
            .get(record)
            .and_then(|r| r.get(RecordHeader::SIZE..));
        let mut body = Bytes::new(body.unwrap_or_default());
        let trailing = match header.kind {
            record_type::AUXTRACE => body.u64(),
            _ => body.u32().map(|size| u64::from(size).next_multiple_of(8)),
        };
        let end = trailing
            .and_then(|size| usize::try_from(size).ok())
            .and_then(|size| self.data.start.checked_add(size))
            .filter(|&end| end <= self.data.end);
        self.truncated |= end.is_none();
        self.data.start = end.unwrap_or(self.data.end);
    }

    fn feed(&mut self, record: Range<usize>, header_size: usize) {
        if !self.unpackable {
            return;
        }
        let mut body = record.start + header_size.min(record.len())..record.end;
        if header_size > RecordHeader::SIZE {
            // PERF_RECORD_COMPRESSED2 is padded, and says how much there really is.
            let size = self.file.get(body.start - 8..).map(Bytes::new);
            let size = size.and_then(|mut bytes| bytes.u64());
            let size = size.and_then(|size| usize::try_from(size).ok());
            body.end = body.end.min(body.start.saturating_add(size.unwrap_or(0)));
        }
        let unpacker = match self.unpacker.take() {
            Some(unpacker) => Ok(unpacker),
            None => Unpacker::new(),
        };
        match unpacker {
            Ok(mut unpacker) => {
                unpacker.feed(body);
                self.unpacker = Some(unpacker);
            }
            Err(Damaged) => self.give_up_unpacking(),
        }
    }

    /// Makes a chunk of the next unpacked bytes, if there are any.
    fn unpack(&mut self) -> bool {
        let Some(unpacker) = &mut self.unpacker else {
            return false;
        };
        match unpacker.unpack(&self.file) {
            Ok(None) => false,
            Ok(Some(bytes)) => {
                let mut chunk = std::mem::take(&mut self.cut_record);
                chunk.extend_from_slice(bytes);
                self.open_chunk = Some(RecordPosition {
                    chunk: self.chunks.add(chunk),
                    offset: 0,
                });
                true
            }
            Err(Damaged) => {
                self.give_up_unpacking();
                false
            }
        }
    }

    fn give_up_unpacking(&mut self) {
        self.unpacker = None;
        self.unpackable = false;
        self.truncated = true;
    }

    fn next_in_chunk(&mut self) -> Option<RecordPosition> {
        let place = self.open_chunk?;
        let rest = self.chunks.bytes(place.chunk).get(place.offset..);
        let rest = rest.unwrap_or_default();
        let size = RecordHeader::parse(rest).map(|header| usize::from(header.size));
        match size {
            Some(size) if size <= rest.len() && self.allowance.is_spent(size) => {
                self.too_large = true;
                self.give_up_unpacking();
            }
            Some(size) if size <= rest.len() => {
                self.open_chunk = Some(RecordPosition {
                    offset: place.offset + size,
                    ..place
                });
                return Some(place);
            }
            None if rest.len() >= RecordHeader::SIZE => self.give_up_unpacking(),
            _ => self.cut_record = rest.to_vec(),
        }
        self.open_chunk = None;
        self.chunks.release(place.chunk);
        None
    }
}
