//! A file read in large pieces, for a reader that requests many small ones.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Keeps the piece of the file that was read last.
pub(super) struct Window {
    file: File,
    /// Where the reader is.
    at: u64,
    /// Where the piece begins.
    start: u64,
    piece: Vec<u8>,
}

impl Window {
    const PIECE: usize = 1 << 20;

    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            at: 0,
            start: 0,
            piece: Vec::new(),
        }
    }

    /// The part of the piece after the reader's position.
    fn ahead(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.start);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        skipped
            .and_then(|skipped| self.piece.get(skipped..))
            .unwrap_or(&[])
    }
}

impl Read for Window {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead().is_empty() {
            // New memory is zero already: most files are smaller than a piece.
            let mut piece = vec![0; Self::PIECE];
            let read = self.file.read_at(&mut piece, self.at)?;
            piece.truncate(read);
            (self.start, self.piece) = (self.at, piece);
        }
        let ahead = self.ahead();
        let count = ahead.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ahead[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Window {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
            SeekFrom::End(distance) => self.file.metadata()?.len().checked_add_signed(distance),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_contents_of_the_file() {
        let path = std::env::current_exe().expect("our own file");
        let whole = std::fs::read(&path).expect("readable");
        let mut window = Window::new(File::open(&path).expect("readable"));
        let mut check = |at: usize, length: usize| {
            window.seek(SeekFrom::Start(at as u64)).expect("a place");
            let mut read = vec![0; length];
            window.read_exact(&mut read).expect("as long as that");
            assert!(read == whole[at..at + length], "{length} bytes at {at}");
        };
        let (piece, end) = (Window::PIECE, whole.len());
        for (at, length) in [
            (0, 64),
            (piece - 3, 9),
            (7, 300),
            (end - 5, 5),
            (10, end - 10),
        ] {
            check(at, length);
        }
        assert_eq!(window.seek(SeekFrom::End(0)).ok(), Some(end as u64));
        assert_eq!(window.read(&mut [0; 8]).ok(), Some(0));
        assert!(window.seek(SeekFrom::Current(-(end as i64) - 1)).is_err());
    }
}
