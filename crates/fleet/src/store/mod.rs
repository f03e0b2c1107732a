//! Files in a directory or in a bucket of an object store.
//!
//! Both offer the same few operations; a file appears completely or not at all, and is never
//! changed.

mod bucket;
mod directory;
mod exchange;
mod http;
mod limits;
mod settings;

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::error::Error;

use bucket::Bucket;
use directory::Directory;

#[cfg(test)]
pub(crate) use directory::kills;

/// The most bytes of a file that is read or written.
pub(crate) const MOST_BYTES: u64 = 512 << 20;

/// A place for files.
#[derive(Debug)]
pub(crate) enum Store {
    /// A directory of this machine.
    Directory(Directory),
    /// A bucket that speaks S3, or a part of it.
    Bucket(Bucket),
}

/// A file in a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Its path in the store, with `/`.
    pub(crate) path: String,
    /// Bytes.
    pub(crate) size: u64,
    /// When it was written, by the store's clock.
    pub(crate) written: SystemTime,
    /// In a directory: which file has this path.
    pub(crate) file: Option<FileId>,
}

/// A file or folder of this machine, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// Another path of a file or folder, by a link or a mount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alias {
    /// This path.
    pub(crate) path: String,
    /// The path that counts.
    pub(crate) of: String,
    /// Whether it is a folder.
    pub(crate) is_folder: bool,
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.is_folder {
            true => "folder",
            false => "file",
        };
        write!(f, "{} is the same {kind} as {}", self.path, self.of)
    }
}

/// The files below a folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Each file once.
    pub(crate) entries: Vec<Entry>,
    /// Further paths of files and folders. A bucket has none.
    pub(crate) aliases: Vec<Alias>,
}

impl Entry {
    /// Whether it was written so long ago.
    pub(crate) fn is_older(&self, than: Duration) -> bool {
        let age = SystemTime::now().duration_since(self.written);
        age.is_ok_and(|age| age > than)
    }
}

impl Store {
    /// The store at an address: `s3://bucket/prefix`, or a directory, as a path or as `file://` and
    /// a path from the root; `None` if it is another address.
    ///
    /// # Errors
    /// The environment lacks settings for it.
    pub(crate) fn open(url: &str) -> Result<Option<Self>, Error> {
        Ok(match url.split_once("://") {
            Some(("s3", address)) => Bucket::open(address)?.map(Self::Bucket),
            Some(("file", path)) if path.starts_with('/') => Some(Self::directory(path)),
            Some(_) => None,
            None => is_path(url).then(|| Self::directory(url)),
        })
    }

    fn directory(path: &str) -> Self {
        Self::Directory(Directory::new(path))
    }

    /// The store at an address, of which something is to be read.
    ///
    /// # Errors
    /// It is another address, a directory that does not exist, or the environment lacks settings.
    pub(crate) fn open_existing(url: &str) -> Result<Self, Error> {
        match Self::open(url)? {
            Some(Self::Directory(directory)) if !directory.exists() => Err(Error::NoDirectory {
                url: url.to_owned(),
            }),
            Some(store) => Ok(store),
            None => Err(Error::NoDataSet {
                url: url.to_owned(),
            }),
        }
    }

    /// Stores a file, unless there is one of this path. Returns whether there was none.
    ///
    /// # Errors
    /// The store cannot be reached, or is full.
    pub(crate) fn put_new(&self, path: &str, bytes: Bytes) -> Result<bool, Error> {
        match self {
            Self::Directory(directory) => directory.put_new(path, &bytes),
            Self::Bucket(bucket) => bucket.put_new(path, bytes),
        }
    }

    /// Whether there is a file of this path.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn has(&self, path: &str) -> Result<bool, Error> {
        match self {
            Self::Directory(directory) => directory.has(path),
            Self::Bucket(bucket) => bucket.has(path),
        }
    }

    /// All files below a folder, each once, in the order of their paths.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        Ok(self.find(folder)?.entries)
    }

    /// All files below a folder, in the order of their paths, and further paths of some.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn find(&self, folder: &str) -> Result<Found, Error> {
        let mut found = match self {
            Self::Directory(directory) => directory.find(folder)?,
            Self::Bucket(bucket) => Found {
                entries: bucket.list(folder)?,
                aliases: Vec::new(),
            },
        };
        found.entries.sort_unstable();
        Ok(found)
    }

    /// The files below a folder that killed processes have not completed. A bucket has none.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn unfinished(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        match self {
            Self::Directory(directory) => directory.unfinished(folder),
            Self::Bucket(_) => Ok(Vec::new()),
        }
    }

    /// The bytes of a file; `None` if it was removed.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Directory(directory) => directory.get(path),
            Self::Bucket(bucket) => bucket.get(path),
        }
    }

    /// Removes a listed file, if it is there.
    ///
    /// # Errors
    /// The store cannot be reached, or the path is that of another file by now.
    pub(crate) fn delete(&self, entry: &Entry) -> Result<(), Error> {
        match self {
            Self::Directory(directory) => directory.delete(entry),
            Self::Bucket(bucket) => bucket.delete(&entry.path),
        }
    }
}

/// Whether this is a path rather than an address whose beginning is missing or mistyped, such as
/// `localhost:4040` and `s3:/bucket`.
fn is_path(text: &str) -> bool {
    let is_explicit = ["/", "./", "../"]
        .iter()
        .any(|begin| text.starts_with(begin));
    is_explicit || !text.is_empty() && !text.contains(':')
}
