//! Files that are written completely or not at all, and a standard output that may close early.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use prof_filemap::foreign;
use prof_filemap::output::{Found, Output, OutputPath};
use prof_perfdata::RewriteError;

use crate::progress::{Mebibytes, with_line};

/// Writes `path` by `fill`, through a temporary file beside it that replaces it at the end
/// ([`Output`]). A pipe or a device is written directly; `-` is the standard output.
///
/// # Errors
///
/// The file cannot be written, or is a recording; the old file is then unchanged.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    refuse_recording(path)?;
    write(path, fill, false)
}

/// Like [`write_file`], for a file that may replace the only copy: it is first on the disk.
///
/// # Errors
///
/// The file cannot be written; the old file is then unchanged.
pub(crate) fn replace_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    write(path, fill, true)
}

fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    on_disk: bool,
) -> Result<()> {
    if path == Path::new("-") {
        return write_stdout(fill);
    }
    let written = AtomicU64::new(0);
    let text = || {
        let written = Mebibytes(written.load(Ordering::Relaxed));
        format!("writing {}: {written}", path.display())
    };
    with_line(text, || {
        let fill = |out: &mut dyn Write| {
            fill(&mut Counted {
                out,
                written: &written,
            })
        };
        write_to(path, fill, on_disk)
    })
}

/// Counts the bytes written.
struct Counted<'a> {
    out: &'a mut dyn Write,
    written: &'a AtomicU64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.written.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_to(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    on_disk: bool,
) -> Result<()> {
    let write = || -> Result<()> { Output::create(path)?.fill(on_disk, fill) };
    named(write(), || format!("cannot write {}", path.display()))
}

/// Refuses to replace a recording by a picture: that is a mistake, and a recording cannot be made
/// again.
fn refuse_recording(path: &Path) -> Result<()> {
    let mut start = [0; 8];
    let read = foreign::open(path).map(|mut file| file.read_exact(&mut start));
    if matches!(read, Ok(Ok(()))) && &start == b"PERFILE2" {
        bail!(
            "{path} is a recording and would be lost: choose another name",
            path = path.display()
        );
    }
    Ok(())
}

/// Checks early whether [`write_file`] would fail for this path.
///
/// # Errors
///
/// Nothing can be written there, or there is a recording; the old file is unchanged.
pub(crate) fn ensure_writable(path: &Path) -> Result<()> {
    refuse_recording(path)?;
    let can_write = || -> io::Result<()> {
        let place = OutputPath::new(path)?;
        match place.found()? {
            Found::Directory => Err(ErrorKind::IsADirectory.into()),
            // Opening a pipe may wait for its reader.
            Found::Special => Ok(()),
            Found::Nothing | Found::File(_) | Found::Link => Output::create(path).map(drop),
        }
    };
    if path == Path::new("-") {
        return prof_events::stdout().map(drop).context(STANDARD_OUTPUT);
    }
    can_write().with_context(|| format!("cannot write {}", path.display()))
}

/// Writes to the standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
///
/// The output cannot be written for another reason, or `fill` fails.
pub(crate) fn write_stdout(fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    named(prof_console::write_stdout(fill), || STANDARD_OUTPUT)
}

const STANDARD_OUTPUT: &str = "cannot write to the standard output";

/// Adds the output's name to errors of writing to it, but not to errors of producing the content.
fn named<C>(written: Result<()>, output: impl FnOnce() -> C) -> Result<()>
where
    C: Display + Send + Sync + 'static,
{
    match written {
        Err(error) if !is_of_input(&error) => Err(error.context(output())),
        written => written,
    }
}

fn is_of_input(error: &anyhow::Error) -> bool {
    let report = error.downcast_ref::<prof_report::Error>();
    let names = error.downcast_ref::<RewriteError>();
    report.is_some_and(|error| !matches!(error, prof_report::Error::Write(_)))
        || names.is_some_and(|error| !matches!(error, RewriteError::Io(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_only_the_old_file() {
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
    fn a_recording_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.data");
        fs::write(&path, b"PERFILE2 and more").unwrap();
        let errors = [write_file(&path, |_| Ok(())), ensure_writable(&path)];
        for error in errors {
            assert!(format!("{:#}", error.unwrap_err()).contains("is a recording"));
        }
        assert_eq!(fs::read(&path).unwrap(), b"PERFILE2 and more");
        replace_file(&path, |_| Ok(())).unwrap();
    }

    #[test]
    fn checking_whether_a_file_can_be_written_leaves_nothing_behind() {
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

    #[test]
    fn unwritable_places_are_named() {
        for path in ["/nonexistent/out.svg", "/"] {
            let path = Path::new(path);
            for error in [
                write_file(path, |_| Ok(())),
                replace_file(path, |_| Ok(())),
                ensure_writable(path),
            ] {
                let message = format!("{:#}", error.unwrap_err());
                let start = format!("cannot write {}", path.display());
                assert!(message.starts_with(&start), "{message}");
            }
        }
    }
}
