//! A directory as a store.

use std::fs::{self, DirEntry, FileType};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use prof_filemap::MappedFile;

use super::Entry;
use crate::error::Error;

/// A directory, which is created with the first file.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

/// Maps a file as long as its bytes are used.
struct Mapped(MappedFile);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Directory {
    /// What the name of a file begins with while it is written.
    const NEW: &str = ".new-";
    /// Nobody writes a file for so long, whatever the clocks of the machines say.
    const LEFT: Duration = Duration::from_secs(24 * 60 * 60);

    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(super) fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// Writes a file with a temporary name, and renames it unless the name is taken.
    pub(super) fn put_new(&self, path: &str, bytes: &[u8]) -> Result<bool, Error> {
        let path = self.root.join(path);
        let put = || -> io::Result<bool> {
            if path.try_exists()? {
                return Ok(false);
            }
            let folder = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(folder)?;
            // Others read it if the umask lets them, as it does with the folders.
            let mut new = tempfile::Builder::new()
                .prefix(Self::NEW)
                .permissions(PermissionsExt::from_mode(0o666))
                .tempfile_in(folder)?;
            new.write_all(bytes)?;
            new.as_file().sync_all()?;
            match new.persist_noclobber(&path) {
                Ok(_) => Ok(true),
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error.error),
            }
        };
        put().map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })
    }

    pub(super) fn has(&self, path: &str) -> Result<bool, Error> {
        let path = self.root.join(path);
        path.try_exists()
            .map_err(|source| Error::Read { path, source })
    }

    pub(super) fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        self.find(folder, |name| !name.starts_with(b"."))
    }

    /// The files that killed processes have not completed.
    pub(super) fn unfinished(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let mut found = self.find(folder, |name| name.starts_with(Self::NEW.as_bytes()))?;
        found.retain(|entry| entry.is_older(Self::LEFT));
        Ok(found)
    }

    /// The files below a folder whose names `fit`.
    fn find(&self, folder: &str, fit: impl Fn(&[u8]) -> bool) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.join(folder)];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(unreadable(&folder))?,
            };
            for entry in entries {
                let entry = entry.map_err(unreadable(&folder))?;
                let path = entry.path();
                let kind = self.kind(&entry).map_err(unreadable(&path))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && fit(entry.file_name().as_encoded_bytes()) {
                    found.extend(self.entry(&path).map_err(unreadable(&path))?);
                }
            }
        }
        Ok(found)
    }

    /// What an entry is. A partition may be a link to a folder on another disk. Links further down
    /// are not followed: they may lead in circles.
    fn kind(&self, entry: &DirEntry) -> io::Result<FileType> {
        /// A table, a date, a service, a host.
        const PARTITION: usize = 4;
        let kind = entry.file_type()?;
        let path = entry.path();
        let inside = path.strip_prefix(&self.root).unwrap_or(&path);
        match kind.is_symlink() && inside.components().count() <= PARTITION {
            true => Ok(path.metadata()?.file_type()),
            false => Ok(kind),
        }
    }

    /// `None` if its path is no text, or if it was removed.
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        let Some(inside) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
            return Ok(None);
        };
        match path.metadata() {
            Ok(metadata) => Ok(Some(Entry {
                path: inside.to_owned(),
                size: metadata.len(),
                written: metadata.modified()?,
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        let path = self.root.join(path);
        match MappedFile::open(&path) {
            Ok(file) => Ok(Some(Bytes::from_owner(Mapped(file)))),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn delete(&self, path: &str) -> Result<(), Error> {
        let path = self.root.join(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map_err(|source| Error::Write { path, source }),
        }
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Read { path, source }
}
