//! Unpacked pieces of a compressed recording, each kept while a record in it is needed.

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPosition {
    /// Number of the chunk; [`RecordPosition::FILE`] for the file itself.
    pub(super) chunk: u32,
    /// Bytes from the start of the chunk or file.
    pub(super) offset: usize,
}

impl RecordPosition {
    pub(super) const FILE: u32 = u32::MAX;

    pub(super) fn in_file(offset: usize) -> Self {
        Self {
            chunk: Self::FILE,
            offset,
        }
    }
}

/// The chunks that hold records which are still needed.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// Numbers of empty chunks.
    free: Vec<u32>,
    /// Bytes in all of them.
    size: usize,
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The records in use, plus one while the chunk is being read.
    users: usize,
}

impl Chunks {
    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Stores `bytes`, with one user: the reader.
    pub(super) fn add(&mut self, bytes: Vec<u8>) -> u32 {
        self.size += bytes.len();
        let chunk = Chunk { bytes, users: 1 };
        match self.free.pop() {
            Some(number) => {
                if let Some(slot) = self.chunks.get_mut(number as usize) {
                    *slot = chunk;
                }
                number
            }
            None => {
                self.chunks.push(chunk);
                (self.chunks.len() - 1) as u32
            }
        }
    }

    pub(super) fn bytes(&self, number: u32) -> &[u8] {
        self.chunks
            .get(number as usize)
            .map_or(&[], |chunk| &chunk.bytes)
    }

    pub(super) fn retain(&mut self, number: u32) {
        if let Some(chunk) = self.chunks.get_mut(number as usize) {
            chunk.users += 1;
        }
    }

    /// Releases one use; the last one frees the chunk.
    pub(super) fn release(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return;
        };
        chunk.users = chunk.users.saturating_sub(1);
        if chunk.users == 0 {
            self.size -= chunk.bytes.len();
            chunk.bytes = Vec::new();
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_lives_as_long_as_it_has_users() {
        let mut chunks = Chunks::default();
        let first = chunks.add(vec![1, 2]);
        chunks.retain(first);
        chunks.release(first);
        assert_eq!((chunks.bytes(first), chunks.size()), (&[1, 2][..], 2));
        chunks.release(first);
        assert_eq!((chunks.bytes(first), chunks.size()), (&[][..], 0));
        assert_eq!(chunks.add(vec![3]), first, "its number is used again");
    }
}
