//! The contents of files.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, for as long as this value lives.
pub(crate) struct FileBytes(Vec<u8>);

impl FileBytes {
    /// Opens a regular file for reading; anything else (a pipe, a device) is refused, as reading
    /// it might never end.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Self::of(&File::open(path)?)
    }

    /// The bytes of an open file.
    pub(crate) fn of(mut file: &File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes)?;
        Ok(Self(bytes))
    }

    /// Bytes that are in memory already.
    pub(crate) fn from_vec(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
