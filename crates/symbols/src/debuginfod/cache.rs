//! The cache of debuginfod clients, laid out as elfutils' own client lays it out.
//!
//! ```text
//!   CACHE/<build id>/debuginfo       the file, mode 0400; empty if no server has it
//!   CACHE/<build id>/executable
//!   CACHE/cache_miss_s               for how many seconds an empty one counts
//! ```

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prof_filemap::MappedFile;
use prof_model::BuildId;
use tempfile::NamedTempFile;

use super::Kind;
use crate::image::Image;
use crate::options::Debuginfod;

/// The directory.
pub(super) struct Cache {
    directory: PathBuf,
    /// How long a download may take.
    longest: Duration,
}

/// The state of a file in the cache.
pub(super) enum Cached {
    Here(PathBuf),
    KnownToBeMissing,
    Unknown,
}

/// For how long a file counts as missing, unless the cache says otherwise.
const MISSING_FOR: Duration = Duration::from_secs(600);

impl Cache {
    pub(super) fn new(options: &Debuginfod) -> Self {
        Self {
            directory: options.cache.clone(),
            longest: options.longest,
        }
    }

    pub(super) fn find(&self, id: BuildId, kind: Kind) -> Cached {
        let path = self.path(id, kind);
        let Ok(metadata) = fs::metadata(&path) else {
            return Cached::Unknown;
        };
        if metadata.len() > 0 {
            return Cached::Here(path);
        }
        let age = metadata
            .modified()
            .ok()
            .and_then(|time| time.elapsed().ok());
        match age {
            Some(age) if age <= self.missing_for() => Cached::KnownToBeMissing,
            _ => Cached::Unknown,
        }
    }

    /// Notes that no server has a file.
    pub(super) fn remember_missing(&self, id: BuildId, kind: Kind) {
        // If it can't be noted, the servers are asked again.
        let path = self.path(id, kind);
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        let _ = options.write(true).create_new(true).mode(0o600).open(path);
    }

    /// A file to download to.
    pub(super) fn create(&self, id: BuildId, kind: Kind) -> io::Result<Download> {
        let path = self.path(id, kind);
        let directory = self.directory.join(id.to_string());
        fs::create_dir_all(&directory)?;
        self.remove_leftovers(&directory, kind);
        let file = tempfile::Builder::new()
            .prefix(&format!("{}.", kind.name()))
            .tempfile_in(directory)?;
        Ok(Download { file, path, id })
    }

    /// Removes what was being downloaded when a process was killed.
    fn remove_leftovers(&self, directory: &Path, kind: Kind) {
        let prefix = format!("{}.", kind.name());
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_partial = entry.file_name().as_bytes().starts_with(prefix.as_bytes());
            let changed = entry.metadata().and_then(|found| found.modified()).ok();
            let age = changed.and_then(|time| time.elapsed().ok());
            // No download takes so long.
            if is_partial && age.is_some_and(|age| age > self.longest) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn missing_for(&self) -> Duration {
        fs::read_to_string(self.directory.join("cache_miss_s"))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .map_or(MISSING_FOR, Duration::from_secs)
    }

    fn path(&self, id: BuildId, kind: Kind) -> PathBuf {
        self.directory.join(id.to_string()).join(kind.name())
    }
}

/// A file that is being downloaded; gone unless it is kept.
pub(super) struct Download {
    file: NamedTempFile,
    path: PathBuf,
    id: BuildId,
}

impl Download {
    /// The file for the bytes.
    pub(super) fn writer(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Moves the file to its path, if it is the requested one.
    pub(super) fn persist(self) -> io::Result<PathBuf> {
        let bytes = MappedFile::from_file(self.file.as_file())?;
        let image = Image::parse(&bytes).map_err(io::Error::other)?;
        if image.build_id() != Some(self.id) {
            return Err(io::Error::other("the server sent another file"));
        }
        self.file
            .as_file()
            .set_permissions(Permissions::from_mode(0o400))?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(self.path)
    }
}
