//! The files of a recording that are complete.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use prof_events::system;
use prof_filemap::output::with_suffix;

use crate::options::Rotation;
use crate::output::file::{Output, is_stdout};

/// Names complete files, and removes the oldest ones.
pub(super) struct CompleteFiles {
    /// `None`: there is only one file.
    rotation: Option<Rotation>,
    /// The oldest first.
    pub(super) files: VecDeque<PathBuf>,
    /// Bytes of all files, of removed ones as well.
    pub(super) bytes: u64,
}

impl CompleteFiles {
    pub(super) fn new(rotation: Option<Rotation>) -> Self {
        Self {
            rotation,
            files: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether files rotate.
    pub(super) fn rotate(&self) -> bool {
        self.rotation.is_some()
    }

    /// Adds a file that is complete at this path: gives it its name, and removes the oldest one if
    /// there are too many.
    pub(super) fn add(&mut self, output: &Output, path: &Path) -> io::Result<()> {
        let Some(rotation) = self.rotation.as_ref().filter(|_| output.is_retained()) else {
            if !is_stdout(path) {
                self.files.push_back(path.to_path_buf());
            }
            return Ok(());
        };
        let name = rename_to_free(output, path)?;
        if let Some(completed) = rotation.completed {
            completed(&name);
        }
        self.files.push_back(name);
        while rotation
            .most_files
            .is_some_and(|most| self.files.len() > most)
            && let Some(oldest) = self.files.pop_front()
        {
            // The user may have removed it.
            let _ = oldest.file_name().map(|name| output.remove(name));
        }
        Ok(())
    }
}

/// The path with the time added to its name.
pub(super) fn with_time(path: &Path) -> PathBuf {
    with_suffix(path, format!(".{}", system::local_time_digits()))
}

/// Adds the time to the file's name; returns its new path.
fn rename_to_free(output: &Output, path: &Path) -> io::Result<PathBuf> {
    const STEP: Duration = Duration::from_millis(10);
    loop {
        let path = with_time(path);
        match output.rename_to_free(path.file_name().unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => thread::sleep(STEP),
            renamed => return renamed.map(|()| path),
        }
    }
}
