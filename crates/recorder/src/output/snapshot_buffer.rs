//! The latest records, kept in memory until they are requested.
//!
//! ```text
//!   chunk: state │ records      chunk: state │ records      chunk: state │ records ...
//!          └─ processes and mappings when it begins; only that of the oldest chunk is written
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::output::file_summary::FileSummary;

/// The records of the last seconds, in chunks that are dropped one by one.
#[derive(Debug)]
pub(crate) struct SnapshotBuffer {
    /// Nanoseconds to keep.
    time: u64,
    /// The most bytes of records to keep.
    bytes: u64,
    /// The last one is the current one.
    chunks: VecDeque<Chunk>,
}

#[derive(Debug, Default)]
struct Chunk {
    begin: u64,
    state: Vec<u8>,
    records: Vec<u8>,
    summary: FileSummary,
}

impl SnapshotBuffer {
    pub(crate) fn new(time: Duration, bytes: u64) -> Self {
        Self {
            time: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            bytes,
            chunks: VecDeque::new(),
        }
    }

    /// Adds whole records to the current chunk.
    pub(crate) fn write(&mut self, records: &[u8]) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.records.extend_from_slice(records);
        }
    }

    /// Bytes of records in the current chunk.
    pub(crate) fn chunk_size(&self) -> u64 {
        self.chunks.back().map_or(0, Chunk::size)
    }

    /// Begins another chunk at this time, with this state.
    pub(crate) fn begin_chunk(&mut self, begin: u64, state: Vec<u8>) {
        self.forget(begin);
        self.chunks.push_back(Chunk {
            begin,
            state,
            ..Chunk::default()
        });
    }

    /// Ends the current chunk, with this summary.
    pub(crate) fn end_chunk(&mut self, summary: FileSummary) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.records.shrink_to_fit();
            chunk.summary = summary;
        }
    }

    /// Drops chunks that ended too long ago, and chunks beyond the limit.
    fn forget(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.time);
        let is_old = |chunk: &Chunk| chunk.begin <= oldest;
        let mut size: u64 = self.chunks.iter().map(Chunk::size).sum();
        while let Some(chunk) = self.chunks.front()
            && (size > self.bytes || self.chunks.get(1).is_some_and(is_old))
        {
            size -= chunk.size();
            self.chunks.pop_front();
        }
    }

    /// Passes on all records that are kept, with the state before the first, and returns their
    /// summary.
    pub(crate) fn copy<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<FileSummary, E> {
        let mut summary = FileSummary::default();
        let state = self.chunks.front().map(|chunk| chunk.state.as_slice());
        write(state.unwrap_or_default())?;
        for chunk in &self.chunks {
            write(&chunk.records)?;
            summary.add(chunk.summary.clone());
        }
        Ok(summary)
    }

    /// Like [`copy`](Self::copy), and drops everything.
    pub(crate) fn take<E>(
        &mut self,
        write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<FileSummary, E> {
        let summary = self.copy(write);
        self.chunks.clear();
        summary
    }
}

impl Chunk {
    fn size(&self) -> u64 {
        self.records.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(number: u64) -> FileSummary {
        let mut summary = FileSummary::default();
        summary.quality.samples = number;
        summary
    }

    /// Adds chunks that begin at these times, with this many bytes; expects these letters when they
    /// are requested.
    fn check(chunks: &[(u64, usize)], expected: &str) {
        let mut recent = SnapshotBuffer::new(Duration::from_nanos(100), 10);
        recent.write(b"before the first chunk there is nothing to add to");
        for (number, &(begin, size)) in chunks.iter().enumerate() {
            let state = format!("[{number}]").into_bytes();
            recent.begin_chunk(begin, state);
            let letter = b'a' + number as u8;
            (0..size).for_each(|_| recent.write(&[letter]));
            recent.end_chunk(samples(number as u64 + 1));
        }
        let mut out = Vec::new();
        let taken = recent.take(|bytes| {
            out.extend_from_slice(bytes);
            Ok::<_, ()>(())
        });
        assert_eq!(String::from_utf8_lossy(&out), expected);
        // The chunk of the letter a has one sample, b has two.
        let letters: std::collections::BTreeSet<u8> =
            out.iter().copied().filter(u8::is_ascii_lowercase).collect();
        let expected = letters.iter().map(|letter| u64::from(letter - b'a') + 1);
        assert_eq!(taken.map(|it| it.quality.samples), Ok(expected.sum()));
        assert_eq!(recent.chunk_size(), 0, "it was taken");
    }

    #[test]
    fn old_records_are_dropped() {
        check(&[], "");
        check(&[(0, 2)], "[0]aa");
        check(&[(0, 2), (50, 1), (149, 1)], "[0]aabc");
        check(&[(0, 2), (50, 1), (150, 1)], "[1]bc");
        check(&[(0, 2), (50, 1), (500, 3)], "[1]bccc");
    }

    #[test]
    fn records_beyond_the_limit_are_dropped() {
        check(&[(0, 4), (10, 4), (20, 4)], "[0]aaaabbbbcccc");
        check(&[(0, 4), (10, 4), (20, 4), (30, 1)], "[1]bbbbccccd");
        check(&[(0, 50), (10, 1)], "[1]b");
    }
}
