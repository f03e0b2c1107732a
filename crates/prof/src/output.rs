//! Files that are written whole or not at all, and a standard output that may close early.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes `path` by `fill`, through a temporary file beside it that takes its place at the end.
/// What is not a regular file (a pipe, a device) is written directly; `-` is the standard output.
///
/// # Errors
///
/// When the file cannot be written; what was there before is untouched then.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if path == Path::new("-") {
        return write_stdout(fill);
    }
    let cannot_write = || format!("cannot write {}", path.display());
    if path.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory)).with_context(cannot_write);
    }
    if is_special(path) {
        let mut out = BufWriter::new(File::create(path).with_context(cannot_write)?);
        let written = fill(&mut out).and_then(|()| Ok(out.flush()?));
        return written.with_context(cannot_write);
    }
    let temporary = temporary_name(path);
    let written = write_new(&temporary, fill).and_then(|()| Ok(fs::rename(&temporary, path)?));
    if written.is_err() {
        // Best effort: the error that led here is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written.with_context(cannot_write)
}

/// Writes `path` by `fill` as a successor of the file `like`, which it may be: with the same owner
/// and permissions, on the disk before it takes its place. What is no regular file, or `-`, is
/// written as by [`write_file`]: a device must not be replaced.
///
/// # Errors
///
/// When the file cannot be written; what was there before is untouched then.
pub(crate) fn replace_file(
    like: &Path,
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if path == Path::new("-") || path.is_dir() || is_special(path) {
        return write_file(path, fill);
    }
    let cannot_write = || format!("cannot write {}", path.display());
    // Of a link, it is the file that is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_name(&place);
    let write = || -> Result<()> {
        let like = fs::metadata(like)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        // Only root may give files away; others own what they write.
        let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
        file.set_permissions(like.permissions())?;
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.into_inner()?.sync_all()?;
        Ok(fs::rename(&temporary, &place)?)
    };
    let written = write();
    if written.is_err() {
        // Best effort: the error that led here is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written.with_context(cannot_write)
}

/// Finds out early whether [`write_file`] would fail for where the file is to be.
///
/// # Errors
///
/// When nothing can be written there; what is there is untouched.
pub(crate) fn ensure_writable(path: &Path) -> Result<()> {
    if path == Path::new("-") || is_special(path) {
        return Ok(());
    }
    let cannot_write = || format!("cannot write {}", path.display());
    if path.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory)).with_context(cannot_write);
    }
    let temporary = temporary_name(path);
    File::create_new(&temporary).with_context(cannot_write)?;
    fs::remove_file(&temporary).with_context(cannot_write)
}

/// Writes to the standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
///
/// When the output cannot be written for another reason, or `fill` fails.
pub(crate) fn write_stdout(fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = fill(&mut out).and_then(|()| Ok(out.flush()?));
    match written {
        Err(error) if is_broken_pipe(&error) => {
            // The buffer still holds what nobody wants: don't try to write it again.
            let _ = out.into_parts();
            Ok(())
        }
        written => written.context("cannot write to the standard output"),
    }
}

/// Whether it is a pipe, a device or a socket: there, and neither a file nor a directory.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

fn write_new(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(File::create_new(path)?);
    fill(&mut out)?;
    out.flush()?;
    Ok(())
}

/// In the same directory, so that a rename is enough.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.svg");
        write_file(&path, |out| Ok(out.write_all(b"old")?)).unwrap();
        let failed = write_file(&path, |out| {
            out.write_all(b"new")?;
            anyhow::bail!("half way")
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("half way"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn asking_whether_a_file_can_be_written_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        ensure_writable(&directory.path().join("out.svg")).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_full_device_is_named() {
        let full = Path::new("/dev/full");
        let error = write_file(full, |out| Ok(out.write_all(&[b'x'; 100_000])?)).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("cannot write /dev/full"),
            "{error:#}"
        );
    }

    /// The kernel's own device is not put at risk: a pipe takes its part.
    #[test]
    fn what_is_no_file_is_written_and_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Both ends, so that nobody waits for the other.
        let mut both = OpenOptions::new();
        let mut reader = both.read(true).write(true).open(&pipe).unwrap();
        let text = |out: &mut dyn Write| Ok(out.write_all(b"text")?);
        write_file(&pipe, text).unwrap();
        replace_file(directory.path(), &pipe, text).unwrap();
        let mut written = [0; 8];
        reader.read_exact(&mut written).unwrap();
        assert_eq!(&written, b"texttext");
        assert!(is_special(&pipe));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn unwritable_places_are_named() {
        for path in ["/nonexistent/out.svg", "/"] {
            let path = Path::new(path);
            for error in [
                write_file(path, |_| Ok(())),
                replace_file(Path::new("/"), path, |_| Ok(())),
                ensure_writable(path),
            ] {
                let message = format!("{:#}", error.unwrap_err());
                let start = format!("cannot write {}", path.display());
                assert!(message.starts_with(&start), "{message}");
            }
        }
    }
}
