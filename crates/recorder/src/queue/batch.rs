//! The records of one pass over the rings, and what was read for them.

use crate::queue::message::{Content, InterpretedReading, Message, StackTail};

/// The records of one pass over all rings, ring by ring: not yet in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Interpreted frames, with the indices of the samples that they were read for.
    interpreted: Vec<(usize, InterpretedReading)>,
    /// The reader's counters, up to the end of this batch.
    pub(crate) counts: ReaderCounts,
    /// When the pass began, by the clock of the records.
    pub(crate) begun: u64,
    /// Whether the recording is to continue in another file with the records after the start of
    /// this pass.
    pub(crate) rotates: bool,
}

/// A record in a batch, or a message, which has no bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    content: Content,
    start: usize,
    length: usize,
    tail: Option<TailInBatch>,
}

/// The tail of a sample's stack, and the position of its bytes in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailInBatch {
    pub(crate) tail: StackTail,
    pub(crate) at: usize,
}

/// A record or a message, and what was read for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry<'a> {
    pub(crate) content: Content,
    /// The record; empty for a message.
    pub(crate) bytes: &'a [u8],
    /// The tail of the sample's stack.
    pub(crate) tail: Option<(StackTail, &'a [u8])>,
    /// The interpreted frames of the sample.
    pub(crate) interpreted: Option<&'a InterpretedReading>,
}

/// The counters of the reader thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderCounts {
    /// Samples dropped because the queue was full.
    pub(crate) dropped: u64,
    /// Stacks cut because the queue was nearly full.
    pub(crate) cut: u64,
    /// How often a ring held garbage.
    pub(crate) corrupt: u64,
}

impl Batch {
    /// Adds the record that `append` writes to the end of a buffer.
    pub(crate) fn push(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.push_as(Content::Record, append);
    }

    /// Adds a message of the reader.
    pub(crate) fn push_message(&mut self, message: Message) {
        self.push_as(Content::Message(message), |_| {});
    }

    /// Adds bytes of this kind.
    pub(crate) fn push_as(&mut self, content: Content, append: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        append(&mut self.bytes);
        self.entries.push(Entry {
            content,
            start,
            length: self.bytes.len() - start,
            tail: None,
        });
    }

    /// Lets `read` append the stack tail of the last sample pushed, and returns its position.
    pub(crate) fn push_tail(
        &mut self,
        read: impl FnOnce(&mut Vec<u8>) -> Option<StackTail>,
    ) -> Option<TailInBatch> {
        let at = self.bytes.len();
        let tail = read(&mut self.bytes)?;
        let read = TailInBatch { tail, at };
        self.share_tail(read);
        Some(read)
    }

    /// Gives the last sample pushed the stack tail that was read for another sample.
    pub(crate) fn share_tail(&mut self, read: TailInBatch) {
        if let Some(entry) = self.entries.last_mut() {
            entry.tail = Some(read);
        }
    }

    /// Adds the interpreted frames of the last sample pushed.
    pub(crate) fn push_interpreted(&mut self, reading: InterpretedReading) {
        let index = self.entries.len().saturating_sub(1);
        self.interpreted.push((index, reading));
    }

    fn interpreted(&self, index: usize) -> Option<&InterpretedReading> {
        let at = self.interpreted.binary_search_by_key(&index, |&(of, _)| of);
        at.ok().and_then(|at| Some(&self.interpreted.get(at)?.1))
    }

    /// The record pushed last.
    pub(crate) fn last_mut(&mut self) -> &mut [u8] {
        let entry = self.entries.last();
        entry
            .and_then(|entry| self.bytes.get_mut(entry.start..entry.start + entry.length))
            .unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this index.
    pub(crate) fn get(&self, index: usize) -> Option<BatchEntry<'_>> {
        let entry = self.entries.get(index)?;
        let bytes = |at: usize, length| self.bytes.get(at..at + length);
        let with_bytes = |read: TailInBatch| Some((read.tail, bytes(read.at, read.tail.length)?));
        Some(BatchEntry {
            content: entry.content,
            bytes: bytes(entry.start, entry.length)?,
            tail: entry.tail.and_then(with_bytes),
            interpreted: self.interpreted(index),
        })
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BatchEntry<'_>> {
        (0..self.entries.len()).map_while(|index| self.get(index))
    }

    /// Bytes of memory that its records use.
    pub(super) fn footprint(&self) -> usize {
        let interpreted = self
            .interpreted
            .iter()
            .map(|(_, reading)| reading.footprint());
        self.bytes.len() + self.entries.len() * size_of::<Entry>() + interpreted.sum::<usize>()
    }

    /// Empties it for reuse, with at most `kept` bytes of memory.
    pub(super) fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.entries.clear();
        self.interpreted.clear();
        self.rotates = false;
        // One huge pass must not keep its memory forever.
        self.bytes.shrink_to(kept);
    }
}
