//! Files: read-only memory maps ([`MappedFile`], the one place where a file becomes a `&[u8]`),
//! files that others name ([`foreign`]), and files that we write ([`output`]).

pub mod foreign;
pub mod output;
mod rights;

pub use rights::Rights;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// Why a file could not be read as bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened, mapped or read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path leads to a directory.
    #[error("cannot read {}: it is a directory, not a file", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The path leads to a pipe, a socket or a device: nothing that can be mapped.
    #[error("cannot read {}: it is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The path leads to a link that must not be followed.
    #[error("cannot read {}: it is a symbolic link", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Root may read the file, and others may not.
    #[error("cannot show {}: not everybody may read it", path.display())]
    Private {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// The kind of I/O error; `None` if the path does not lead to a regular file.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Private { .. } => Some(io::ErrorKind::PermissionDenied),
            Self::Directory { .. } | Self::NotRegular { .. } | Self::Link { .. } => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { source, .. } => source,
            error => Self::new(error.io_kind().unwrap_or(io::ErrorKind::Other), error),
        }
    }
}

/// The bytes of a file, mapped read-only or, after [`read`](Self::read), in memory of our own.
///
/// # Hazards of a map
///
/// Others own the file. If it is **truncated** while it is mapped, touching a page past its new end
/// raises `SIGBUS`, which ends the process. If it is **written to**, the bytes change under the
/// reader. Neither normally happens to binaries and debug files, because linkers and package
/// managers replace files rather than write into them. Use [`read`](Self::read) for a file that may
/// still be written.
pub struct MappedFile {
    bytes: Bytes,
}

enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl MappedFile {
    /// Maps a regular file. An empty file is an empty slice.
    ///
    /// # Errors
    /// The file cannot be opened or mapped, or is no regular file. Opening never blocks and never
    /// waits for the other end of a pipe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = foreign::open(path)?;
        Self::from_file(&file).map_err(|source| io_error(path, source))
    }

    /// Maps a file that is open already; the map outlives the descriptor.
    ///
    /// # Errors
    /// The system cannot map it, for example because it is a pipe.
    pub fn from_file(file: &File) -> io::Result<Self> {
        // mmap(2) refuses a length of zero.
        if file.metadata()?.len() == 0 {
            return Ok(Self::from(Vec::new()));
        }
        // SAFETY: the map is read-only and private, so nothing that Rust owns aliases it mutably.
        // Other processes may still change the file: readers accept any bytes, check all that they
        // read, and the type's documentation states the hazard of truncation.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(file)? };
        Ok(Self {
            bytes: Bytes::Mapped(map),
        })
    }

    /// Reads a regular file into memory. This costs memory of its size, but later changes to the
    /// file do no harm. Also works for files whose size the system does not report, as in `/proc`.
    ///
    /// # Errors
    /// The file cannot be opened or read, or is no regular file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        foreign::open(path)?
            .read_to_end(&mut bytes)
            .map_err(|source| io_error(path, source))?;
        Ok(Self::from(bytes))
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

impl From<Vec<u8>> for MappedFile {
    /// Wraps bytes that are in memory already, for code that takes a file.
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Bytes::Owned(bytes),
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFile({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_reads_the_same_bytes() {
        let path = std::env::current_exe().unwrap();
        let expected = std::fs::read(&path).unwrap();
        assert!(*MappedFile::open(&path).unwrap() == expected[..]);
        assert!(*MappedFile::read(&path).unwrap() == expected[..]);
    }

    #[test]
    fn an_empty_file_is_an_empty_slice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(MappedFile::open(file.path()).unwrap().is_empty());
        assert!(MappedFile::read(file.path()).unwrap().is_empty());
    }

    #[test]
    fn a_map_outlives_the_name_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let map = MappedFile::open(file.path()).unwrap();
        drop(file);
        assert_eq!(&*map, b"abc");
    }

    #[test]
    fn special_files_are_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(status.unwrap().success());
        let check = |path: &Path, expected: &str| {
            for result in [MappedFile::open(path), MappedFile::read(path)] {
                let message = result.unwrap_err().to_string();
                assert!(message.ends_with(expected), "{message}");
                assert!(message.contains(&*path.to_string_lossy()), "{message}");
            }
        };
        check(directory.path(), "is a directory, not a file");
        check(&fifo, "is not a regular file");
        check(Path::new("/dev/null"), "is not a regular file");
        check(
            &directory.path().join("missing"),
            "No such file or directory (os error 2)",
        );
    }
}
