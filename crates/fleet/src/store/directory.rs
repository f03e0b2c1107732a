//! A directory as a store.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirEntry, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use prof_filemap::MappedFile;

use super::{Alias, Entry, FileId, Found};
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
            self.refuse_alias(folder)?;
            #[cfg(test)]
            kills::step()?;
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

    /// Fails for a folder that is another one of the data set, by a link: what is stored there
    /// would count as the other's.
    fn refuse_alias(&self, folder: &Path) -> io::Result<()> {
        let (root, real) = (self.root.canonicalize()?, folder.canonicalize()?);
        let inside = folder.strip_prefix(&self.root).unwrap_or(folder);
        match real.starts_with(&root) && real != root.join(inside) {
            true => Err(io::Error::other(format!(
                "its folder is a link to {}, of the same data set: remove the link",
                real.display()
            ))),
            false => Ok(()),
        }
    }

    /// The files below a folder, except hidden ones.
    pub(super) fn find(&self, folder: &str) -> Result<Found, Error> {
        self.walk(folder, |name| !name.starts_with(b"."))
    }

    /// The files that killed processes have not completed.
    pub(super) fn unfinished(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let found = self.walk(folder, |name| name.starts_with(Self::NEW.as_bytes()))?;
        let mut entries = found.entries;
        entries.retain(|entry| entry.is_older(Self::LEFT));
        Ok(entries)
    }

    /// The files below a folder whose names `fit`, each once, and each folder once: whatever has
    /// several paths, by links or mounts, has the first one without links.
    fn walk(&self, folder: &str, fit: impl Fn(&[u8]) -> bool) -> Result<Found, Error> {
        let mut walk = Walk::default();
        let top = self.root.join(folder);
        let metadata = match top.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(walk.found),
            metadata => metadata.map_err(unreadable(&top))?,
        };
        // Whether it is behind a link: the paths without links come first. Their order is that of
        // their bytes: comparing paths takes long.
        let mut queue = BTreeMap::from([((false, top.into_os_string()), metadata)]);
        while let Some(((is_behind_link, path), metadata)) = queue.pop_first() {
            let path = PathBuf::from(path);
            let Some(inside) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
                continue;
            };
            if !walk.is_new(inside, &metadata) {
                continue;
            }
            if !metadata.is_dir() {
                walk.found.entries.push(Entry {
                    path: inside.to_owned(),
                    size: metadata.len(),
                    written: metadata.modified().map_err(unreadable(&path))?,
                    file: Some(FileId::of(&metadata)),
                });
                continue;
            }
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(unreadable(&path))?,
            };
            for entry in entries {
                let entry = entry.map_err(unreadable(&path))?;
                let path = entry.path();
                let is_link = self.is_followed(&entry).map_err(unreadable(&path))?;
                let metadata = match is_link {
                    true => path.metadata(),
                    false => entry.metadata(),
                };
                let metadata = match metadata {
                    // Another process has removed it.
                    Err(error) if error.kind() == ErrorKind::NotFound && !is_link => continue,
                    metadata => metadata.map_err(unreadable(&path))?,
                };
                let fits = metadata.is_file() && fit(entry.file_name().as_encoded_bytes());
                if fits || metadata.is_dir() {
                    queue.insert((is_behind_link || is_link, path.into_os_string()), metadata);
                }
            }
        }
        Ok(walk.found)
    }

    /// Whether it is a link that is followed. A partition may be a link to a folder on another
    /// disk. Links further down are nothing.
    fn is_followed(&self, entry: &DirEntry) -> io::Result<bool> {
        /// A table, a date, a service, a host.
        const PARTITION: usize = 4;
        let path = entry.path();
        let inside = path.strip_prefix(&self.root).unwrap_or(&path);
        Ok(entry.file_type()?.is_symlink() && inside.components().count() <= PARTITION)
    }

    pub(super) fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        let path = self.root.join(path);
        match MappedFile::open(&path) {
            Ok(file) => Ok(Some(Bytes::from_owner(Mapped(file)))),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file, unless it is another one than when it was listed.
    pub(super) fn delete(&self, entry: &Entry) -> Result<(), Error> {
        let path = self.root.join(&entry.path);
        let delete = || -> io::Result<bool> {
            #[cfg(test)]
            kills::step()?;
            let metadata = path.metadata()?;
            let is_same = Some(FileId::of(&metadata)) == entry.file
                && metadata.len() == entry.size
                && metadata.modified()? == entry.written;
            if is_same {
                fs::remove_file(&path)?;
            }
            Ok(is_same)
        };
        match delete() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Changed {
                path: entry.path.clone(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::Write { path, source }),
        }
    }
}

/// What was found below a folder.
#[derive(Default)]
struct Walk {
    found: Found,
    /// The path of each file and folder.
    paths: HashMap<FileId, String>,
}

impl Walk {
    /// Whether a file or folder has no other path so far; else remembers this one as its alias.
    fn is_new(&mut self, path: &str, metadata: &Metadata) -> bool {
        let known = self.paths.get(&FileId::of(metadata));
        if let Some(of) = known {
            self.found.aliases.push(Alias {
                path: path.trim_end_matches('/').to_owned(),
                of: of.trim_end_matches('/').to_owned(),
                is_folder: metadata.is_dir(),
            });
            return false;
        }
        self.paths.insert(FileId::of(metadata), path.to_owned());
        true
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Read { path, source }
}

/// Lets tests end their own changes to directories in the middle, as a kill does.
#[cfg(test)]
pub(crate) mod kills {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// The changes of this thread fail after so many.
    pub(crate) fn after(steps: usize) {
        LEFT.set(steps);
    }

    pub(super) fn step() -> io::Result<()> {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        match left {
            0 => Err(io::Error::other("killed")),
            _ => Ok(()),
        }
    }
}
