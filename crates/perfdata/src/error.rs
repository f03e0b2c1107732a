//! The errors of a whole recording, and of one record.

use std::io;
use std::path::PathBuf;

/// Why a recording cannot be read at all. Damage further in is not an error: see
/// [`Recording::truncated`](crate::Recording::truncated) and
/// [`Recording::malformed`](crate::Recording::malformed).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no bytes.
    #[error("the recording is empty: nothing was written to it")]
    Empty,
    /// The file doesn't begin as a perf.data file does.
    #[error("not a perf.data recording (it does not begin with PERFILE2)")]
    NotPerfData,
    /// The file is in the format of perf before Linux 2.6.38 or so.
    #[error("recordings in the first perf.data format (PERFFILE) are not supported; record again")]
    OldFormat,
    /// The file was recorded on a machine of the other byte order.
    #[error("big-endian recordings are not supported: report it with perf on a big-endian machine")]
    BigEndian,
    /// The file ends within its header or before its events.
    #[error(
        "the recording ends before its first event: it was cut off while it was written or copied"
    )]
    NoHeader,
    /// The file describes no event.
    #[error("the recording describes no events: it is damaged, or recording failed at the start")]
    NoEvents,
    /// An event's description is too short.
    #[error(
        "the recording is damaged: the description of an event ({size} bytes) is too short or \
             has a wrong size"
    )]
    Attr {
        /// Bytes that are there.
        size: usize,
    },
    /// There are several events, and records do not contain the id of their event.
    #[error(
        "the recording has several events with different sample types, and no ids to \
         distinguish them; record again with a newer perf or with one event"
    )]
    Indistinguishable,
}

/// Why one record cannot be parsed. Later records can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It ends before a field that it should have.
    #[error("a record of type {kind} ({size} bytes) is too short for its fields")]
    Short {
        /// The record's type.
        kind: u32,
        /// Its size in bytes, header included.
        size: usize,
    },
    /// It belongs to no event of the recording.
    #[error("a sample has the id {id}, which no event has")]
    UnknownId {
        /// The id.
        id: u64,
    },
}

/// Why a record cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A record's size has 16 bits.
    #[error("cannot write a record of {size} bytes: 65535 is the limit")]
    TooLong {
        /// The size that the record would have, in bytes.
        size: usize,
    },
    /// The sample type has fields that cannot be encoded.
    #[error("cannot write samples with the fields {fields:#x}")]
    Unsupported {
        /// Bits of [`SampleType`](crate::SampleType).
        fields: u64,
    },
}

/// Why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the recording: {source}")]
pub struct WriteError {
    #[from]
    source: io::Error,
}

impl WriteError {
    /// The kind of I/O error, such as [`io::ErrorKind::StorageFull`].
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Why a file cannot be opened as a recording; names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read at all.
    #[error(transparent)]
    File(#[from] prof_filemap::Error),
    /// It is not a recording.
    #[error("cannot read {}: {source}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Error,
    },
}
