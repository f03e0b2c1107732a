//! The folder in which recordings wait to be pushed.
//!
//! ```text
//!   recording                 being written
//!   recording.TIMESTAMP       complete: waits
//!   recording.unfinished.N    what a collector that was killed had written: waits as well
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::error::Error;

/// The folder of one collector.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// The most bytes that recordings may take while they wait.
    most_bytes: u64,
    /// Held, so that no other collector uses the folder.
    _lock: File,
}

/// A recording that waits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    written: SystemTime,
    path: PathBuf,
    bytes: u64,
}

impl Spool {
    const RECORDING: &str = "recording";

    /// Takes the folder, which is created if need be.
    ///
    /// # Errors
    /// It cannot be created, or another collector has it.
    pub(super) fn open(folder: &Path, most_bytes: u64) -> Result<Self, Error> {
        let failed = |source| unusable(folder, source);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::open(folder).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => Error::SpoolInUse {
                folder: folder.to_owned(),
            },
            errno => failed(errno.into()),
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            most_bytes,
            _lock: lock,
        })
    }

    /// What the recorder writes.
    pub(super) fn recording(&self) -> PathBuf {
        self.folder.join(Self::RECORDING)
    }

    /// Has what an earlier recorder did not complete wait with the others.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn adopt_unfinished(&self) -> io::Result<()> {
        let free = (0..).map(|number| format!("{}.unfinished.{number}", Self::RECORDING));
        let mut free = free.map(|name| self.folder.join(name));
        match (free.find(|path| !path.exists()), self.recording()) {
            (Some(name), recording) if recording.exists() => fs::rename(recording, name),
            _ => Ok(()),
        }
    }

    /// The recordings that wait, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let found = self.find()?;
        Ok(found.into_iter().map(|waiting| waiting.path).collect())
    }

    /// Removes the oldest recordings until the others fit; returns how many went.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(super) fn drop_oldest(&self) -> io::Result<usize> {
        let found = self.find()?;
        let mut bytes: u64 = found.iter().map(|waiting| waiting.bytes).sum();
        let mut dropped = 0;
        for waiting in found {
            if bytes <= self.most_bytes {
                break;
            }
            fs::remove_file(&waiting.path)?;
            bytes -= waiting.bytes;
            dropped += 1;
        }
        Ok(dropped)
    }

    /// The error that this is.
    pub(super) fn unusable(&self, source: io::Error) -> Error {
        unusable(&self.folder, source)
    }

    fn find(&self) -> io::Result<Vec<Waiting>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let suffix = name.to_string_lossy();
            let suffix = suffix.strip_prefix(Self::RECORDING);
            if !suffix.is_some_and(|suffix| suffix.starts_with('.')) {
                continue;
            }
            let metadata = entry.metadata()?;
            found.push(Waiting {
                written: metadata.modified()?,
                path: entry.path(),
                bytes: metadata.len(),
            });
        }
        found.sort();
        Ok(found)
    }
}

fn unusable(folder: &Path, source: io::Error) -> Error {
    Error::Spool {
        folder: folder.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_wait_within_the_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("deep/spool");
        let spool = Spool::open(&folder, 100).expect("free");
        let other = Spool::open(&folder, 100);
        assert!(matches!(other, Err(Error::SpoolInUse { .. })), "{other:?}");
        let minute = |number: u64| std::time::Duration::from_secs(60 * number);
        for number in 1..=4 {
            let path = folder.join(format!("recording.{}", 10 - number));
            fs::write(&path, [0; 40]).expect("written");
            let time = SystemTime::UNIX_EPOCH + minute(number);
            let file = File::options().write(true).open(&path).expect("there");
            file.set_modified(time).expect("set");
        }
        fs::write(spool.recording(), [0; 400]).expect("written");
        fs::write(folder.join("notes"), [0; 400]).expect("written");
        assert_eq!(spool.drop_oldest().expect("readable"), 2);
        let names = |spool: &Spool| -> Vec<_> {
            let waiting = spool.waiting().expect("readable");
            let names = waiting.iter().filter_map(|path| path.file_name());
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(names(&spool), ["recording.7", "recording.6"]);
        spool.adopt_unfinished().expect("renamed");
        spool.adopt_unfinished().expect("nothing to do");
        let all = ["recording.7", "recording.6", "recording.unfinished.0"];
        assert_eq!(names(&spool), all);
    }
}
