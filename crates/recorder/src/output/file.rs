//! The output file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;

use prof_filemap::output::{Found, OutputPath};

/// A new file that replaces an older one, which is kept with `.old` added to its name. Until
/// [`retain`](Self::retain) is called, dropping it restores the older one.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` if it is the standard output.
    place: Option<OutputPath>,
    /// The name of the older file.
    kept: Option<OsString>,
    retained: bool,
}

impl Output {
    /// Creates the file, for its owner only. Anything at its path but a regular file (a directory,
    /// a device, a pipe) is left alone and is an error.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, File)> {
        if is_stdout(path) {
            let stdout = prof_events::stdout()?;
            if stdout.is_terminal() {
                let why = "the standard output is a terminal: write to a file or into a pipe";
                return Err(io::Error::other(why));
            }
            let stdout = stdout.as_fd().try_clone_to_owned()?;
            let output = Self {
                place: None,
                kept: None,
                retained: true,
            };
            return Ok((output, stdout.into()));
        }
        let place = OutputPath::new(path)?;
        let kept = set_aside(&place)?;
        // Under its name from the start, not in a temporary file: if we are killed, the recording
        // is where the user looks for it. `O_EXCL`: the name is free now, and a link that another
        // user puts there is not followed.
        match place.create_new() {
            // Only from here on may we remove the file with that name.
            Ok(file) => {
                let output = Self {
                    place: Some(place),
                    kept,
                    retained: false,
                };
                Ok((output, file))
            }
            Err(error) => {
                put_back(kept.as_deref(), &place);
                Err(error)
            }
        }
    }

    /// Retains the new file, even if later steps fail.
    pub(crate) fn retain(&mut self) {
        self.retained = true;
    }

    /// Whether [`retain`](Self::retain) was called.
    pub(crate) fn is_retained(&self) -> bool {
        self.retained
    }

    /// Gives the file another name in its directory, unless that name is taken.
    pub(crate) fn rename_to_free(&self, name: &OsStr) -> io::Result<()> {
        match &self.place {
            Some(place) => place.rename_to_free(place.name(), name),
            None => Ok(()),
        }
    }

    /// Removes another file from its directory.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match &self.place {
            Some(place) => place.remove(name),
            None => Ok(()),
        }
    }
}

/// `-`: the recording goes to the standard output, in pipe form.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Drop for Output {
    fn drop(&mut self) {
        let Some(place) = self.place.as_ref().filter(|_| !self.retained) else {
            return;
        };
        let _ = place.remove(place.name());
        put_back(self.kept.as_deref(), place);
    }
}

/// Renames the existing file; returns its new name, or `None` if there was none. Anything but a
/// regular file or a link is left alone.
fn set_aside(place: &OutputPath) -> io::Result<Option<OsString>> {
    match place.found()? {
        Found::Nothing => return Ok(None),
        Found::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        Found::Special => {
            return Err(io::Error::other(
                "it is not a regular file (`-o -` writes to the standard output)",
            ));
        }
        Found::File(_) | Found::Link => {}
    }
    let old = old_name(place.name());
    place.rename(place.name(), &old)?;
    Ok(Some(old))
}

fn put_back(kept: Option<&OsStr>, place: &OutputPath) {
    // Errors cannot be handled here, and nothing is lost: FILE.old still exists.
    if let Some(kept) = kept {
        let _ = place.rename(kept, place.name());
    }
}

fn old_name(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".old");
    name
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn old_path(path: &Path) -> PathBuf {
        old_name(path.as_os_str()).into()
    }

    fn read(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn an_existing_file_is_kept_as_old() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("prof.data");
        fs::write(&path, "before").expect("written");
        let (mut output, _) = Output::create(&path).expect("created");
        output.retain();
        drop(output);
        assert_eq!(read(&path).as_deref(), Some(""));
        assert_eq!(read(&old_path(&path)).as_deref(), Some("before"));
        let mode = fs::metadata(&path).map(|found| found.permissions().mode() & 0o777);
        assert_eq!(mode.ok(), Some(0o600));
    }

    #[test]
    fn without_a_recording_all_is_as_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("prof.data");
        drop(Output::create(&path));
        assert!(!path.exists());
        fs::write(&path, "before").expect("written");
        drop(Output::create(&path));
        assert_eq!(read(&path).as_deref(), Some("before"));
        assert!(!old_path(&path).exists());
    }

    #[test]
    fn special_files_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, socket) = (folder.path().join("inner"), folder.path().join("socket"));
        fs::create_dir(&inner).expect("created");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        let missing = folder.path().join("no/such/folder");
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).expect("linked");
        for path in [&inner, &socket, &missing, &device] {
            let there = path.exists();
            let error = Output::create(path).expect_err("refused");
            assert_eq!(path.exists(), there, "{error}");
            assert!(!old_path(path).exists(), "{error}");
        }
    }

    #[test]
    fn a_link_is_moved_away_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, path) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "precious").expect("written");
        std::os::unix::fs::symlink(&target, &path).expect("linked");
        let (mut output, _) = Output::create(&path).expect("created");
        output.retain();
        assert_eq!(read(&target).as_deref(), Some("precious"));
    }
}
