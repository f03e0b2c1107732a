//! The file that is written.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A new file in the place of an older one, which is kept with `.old` added to its name. Until
/// [`keep`](Self::keep) is called, dropping it puts the older one back.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    kept: Option<PathBuf>,
    keep: bool,
}

impl Output {
    /// Creates the file, for its owner only. What is in the way and no regular file (a
    /// directory, a device, a pipe) is left alone and is an error.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, File)> {
        if is_stdout(path) {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                let why = "the standard output is a terminal: write to a file, or into a pipe";
                return Err(io::Error::other(why));
            }
            let stdout = stdout.as_fd().try_clone_to_owned()?;
            let output = Self {
                path: path.to_owned(),
                kept: None,
                keep: true,
            };
            return Ok((output, stdout.into()));
        }
        let kept = set_aside(path)?;
        // The name is free now: never follow a link that somebody puts there.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match file {
            // Only from here on is the file at `path` ours to remove.
            Ok(file) => {
                let output = Self {
                    path: path.to_owned(),
                    kept,
                    keep: false,
                };
                Ok((output, file))
            }
            Err(error) => {
                put_back(kept.as_deref(), path);
                Err(error)
            }
        }
    }

    /// The new file stays, even if what comes next fails.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    /// Whether [`keep`](Self::keep) was called.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep
    }
}

/// `-`: the recording goes to the standard output, in pipe form.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_file(&self.path);
            put_back(self.kept.as_deref(), &self.path);
        }
    }
}

/// Renames what is at `path`; returns its new name, or `None` if there was nothing. What is no
/// regular file and no link is left as it is.
fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() && !found.is_symlink() {
        return Err(io::Error::other(
            "it is not a regular file (`-o -` writes to the standard output, wherever that goes)",
        ));
    }
    let old = old_name(path);
    fs::rename(path, &old)?;
    Ok(Some(old))
}

fn put_back(kept: Option<&Path>, path: &Path) {
    // Nothing can be done about errors here, and nothing is lost: FILE.old is still there.
    if let Some(kept) = kept {
        let _ = fs::rename(kept, path);
    }
}

fn old_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn an_existing_file_is_kept_as_old() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("prof.data");
        fs::write(&path, "before").expect("written");
        let (mut output, _) = Output::create(&path).expect("created");
        output.keep();
        drop(output);
        assert_eq!(read(&path).as_deref(), Some(""));
        assert_eq!(read(&old_name(&path)).as_deref(), Some("before"));
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
        assert!(!old_name(&path).exists());
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, socket) = (folder.path().join("inner"), folder.path().join("socket"));
        fs::create_dir(&inner).expect("created");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        let missing = folder.path().join("no/such/folder");
        for path in [&inner, &socket, &missing] {
            let there = path.exists();
            let error = Output::create(path).expect_err("refused");
            assert_eq!(path.exists(), there, "{error}");
            assert!(!old_name(path).exists(), "{error}");
        }
    }

    #[test]
    fn a_link_is_moved_away_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, path) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "precious").expect("written");
        std::os::unix::fs::symlink(&target, &path).expect("linked");
        let (mut output, _) = Output::create(&path).expect("created");
        output.keep();
        assert_eq!(read(&target).as_deref(), Some("precious"));
    }
}
