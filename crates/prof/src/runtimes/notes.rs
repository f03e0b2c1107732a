//! Notes about the perf maps that prof requests, so that the next one removes those of a prof that
//! was killed.
//!
//! ```text
//!   /run/user/UID/prof-maps-PID    root's: /run/prof-maps-PID    the path of the recording
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use prof_model::Pid;
use prof_procfs::Task;

use super::environment::Settings;
use super::perf_maps::{PerfMap, requested_processes};

const PREFIX: &str = "prof-maps-";

/// A note.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Notes that the processes of this recording may write perf maps. `None` if there is no place
    /// for notes that only we can write to.
    pub(super) fn write(recording: &Path) -> Option<Self> {
        let recording = std::path::absolute(recording).ok()?;
        let path = directory()?.join(format!("{PREFIX}{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path).ok()?;
        match file.write_all(recording.as_os_str().as_bytes()) {
            Ok(()) => Some(Self(path)),
            Err(_) => {
                Self(path).remove();
                None
            }
        }
    }

    /// The maps are removed.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

/// Removes the perf maps that profs which were killed had requested, of processes that have ended.
/// Errors are ignored: the next prof will try again.
pub(super) fn remove_leftovers() {
    let entries = directory().and_then(|it| fs::read_dir(it).ok());
    for entry in entries.into_iter().flatten().flatten() {
        if author(&entry.file_name()).is_some_and(has_ended) {
            settle(&entry.path());
        }
    }
}

/// The prof that wrote the note of this name.
fn author(name: &OsStr) -> Option<Pid> {
    name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Whether a prof has ended; one with our own number has.
fn has_ended(pid: Pid) -> bool {
    pid == std::process::id() as Pid || !Task::of(pid).exists()
}

/// Removes the maps of a note, and the note once all its processes have ended.
fn settle(note: &Path) {
    let begin = fs::symlink_metadata(note).and_then(|found| found.modified());
    let (Ok(begin), Ok(recording)) = (begin, fs::read(note)) else {
        return;
    };
    let mut all_ended = true;
    for (&pid, &setting) in &processes(Path::new(OsStr::from_bytes(&recording))) {
        if Task::of(pid).exists() {
            all_ended = false;
        } else if let Some(map) = PerfMap::left_by(pid, begin) {
            if Settings::possible().any(|it| it.of_dotnet() == Some(setting)) {
                map.remove_images(begin);
            }
            map.remove();
        }
    }
    if all_ended {
        let _ = fs::remove_file(note);
    }
}

/// The processes in a recording of ours that ran a runtime.
fn processes(recording: &Path) -> BTreeMap<Pid, &'static str> {
    let user = rustix::process::geteuid().as_raw();
    let is_ours = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == user)
    };
    match is_ours(recording) {
        true => requested_processes(&[recording.to_owned()], |_, mapped| {
            Settings::possible().find_map(|settings| settings.of_executable(mapped))
        }),
        false => BTreeMap::new(),
    }
}

/// The directory for notes: nobody else can write to it.
fn directory() -> Option<PathBuf> {
    let user = rustix::process::geteuid();
    let directory = match user.is_root() {
        true => PathBuf::from("/run"),
        false => PathBuf::from(format!("/run/user/{}", user.as_raw())),
    };
    let found = fs::symlink_metadata(&directory).ok()?;
    let is_ours = found.is_dir() && found.uid() == user.as_raw() && found.mode() & 0o022 == 0;
    is_ours.then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_notes_of_profs_that_have_ended_are_settled() {
        let author = |name: &str| author(OsStr::new(name));
        assert_eq!(author("prof-maps-12"), Some(12));
        assert_eq!(author("prof-maps-x"), None);
        assert_eq!(author("other-12"), None);
        // The kernel's PID_MAX_LIMIT is lower.
        assert!(has_ended(4_194_304 + 1));
        assert!(has_ended(std::process::id() as Pid));
        assert!(!has_ended(1));
    }
}
