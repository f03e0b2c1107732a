//! The bytes of a module, read piece by piece.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::ModuleError;

/// A module's file, or its whole image in memory.
///
/// Files are read with `pread`, not mapped: a file that is truncated under a map kills its reader.
#[derive(Debug)]
pub(crate) enum Source {
    File(File),
    Image(Vec<u8>),
}

impl Source {
    /// Reads up to `buffer.len()` bytes from `offset` on; fewer at the end of the file.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => read_file(file, offset, buffer),
            Self::Image(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = bytes.get(start..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// Reads exactly `size` bytes from `offset` on, if they are there and no more than `limit`.
    pub(crate) fn read_range(
        &self,
        offset: u64,
        size: u64,
        limit: u64,
    ) -> Result<Vec<u8>, ModuleError> {
        let mut bytes = vec![0; self.check_range(offset, size, limit)?];
        let count = self.read(offset, &mut bytes)?;
        if count < bytes.len() {
            return Err(ModuleError::Malformed);
        }
        Ok(bytes)
    }

    /// The size, if this many bytes are there from `offset` on and no more than `limit`.
    pub(crate) fn check_range(
        &self,
        offset: u64,
        size: u64,
        limit: u64,
    ) -> Result<usize, ModuleError> {
        let end = offset.checked_add(size).ok_or(ModuleError::Malformed)?;
        if size > limit {
            return Err(ModuleError::TooLarge);
        }
        if end > self.size()? {
            return Err(ModuleError::Malformed);
        }
        Ok(size as usize)
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Image(bytes) => Ok(bytes.len() as u64),
        }
    }
}

fn read_file(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
