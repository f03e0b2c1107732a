//! Source files, found by the paths that compilers left in debug info.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use prof_filemap::foreign;

/// The places where source files are searched.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Replacements for the beginnings of paths: whole components are compared.
    pub maps: Vec<(PathBuf, PathBuf)>,
    /// Directories that hold copies: a file is searched there by its whole path, then without its
    /// first directories, one after the other.
    pub directories: Vec<PathBuf>,
    /// The directories of the recordings: searched last, by a file's path, then without its first
    /// directories, but with at least one of them.
    pub recordings: Vec<PathBuf>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path.
    pub path: PathBuf,
    /// Its lines, without their ends.
    pub lines: Vec<String>,
}

/// The places where a source file was not found.
#[derive(Debug)]
pub struct NoSource {
    /// The paths that were tried, in order, with the errors.
    pub tried: Vec<(PathBuf, io::Error)>,
}

impl SourceFile {
    /// The text of a line by its number from 1.
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(index).map(String::as_str)
    }
}

impl Sources {
    /// The places beside these recordings, without settings of the user.
    pub fn beside(recordings: &[PathBuf]) -> Self {
        let directories = recordings.iter().filter_map(|file| file.parent());
        Self {
            recordings: directories.map(Path::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Reads the file that the compiler knew by this path.
    ///
    /// # Errors
    /// [`NoSource`] if it is nowhere, or can't be read.
    pub fn find(&self, file: &str) -> Result<SourceFile, NoSource> {
        let mut tried = Vec::new();
        for path in self.candidates(Path::new(file)) {
            let read = match self.is_named(&path) {
                true => foreign::open(&path),
                false => foreign::open_to_show(&path),
            };
            match read.map_err(io::Error::from).and_then(lines) {
                Ok(lines) => return Ok(SourceFile { path, lines }),
                Err(error) => tried.push((path, error)),
            }
        }
        for path in self.beside_recordings(Path::new(file)) {
            let read = foreign::open_to_show(&path).map_err(io::Error::from);
            match read.and_then(lines) {
                Ok(lines) => return Ok(SourceFile { path, lines }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tried.push((path, error)),
            }
        }
        Err(NoSource { tried })
    }

    /// Whether the user named the directory that it is in.
    fn is_named(&self, path: &Path) -> bool {
        let mapped = self.maps.iter().map(|(_, to)| to);
        let mut directories = mapped.chain(&self.directories);
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        !goes_up && directories.any(|directory| path.starts_with(directory))
    }

    /// The paths to try, each once.
    fn candidates(&self, file: &Path) -> Vec<PathBuf> {
        let mapped = self.maps.iter().filter_map(|(from, to)| {
            let rest = file.strip_prefix(from).ok()?;
            Some(to.join(rest))
        });
        let copies = copies(&self.directories, file, 1);
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in mapped.chain(copies).chain([file.to_path_buf()]) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// The paths to try at last.
    fn beside_recordings(&self, file: &Path) -> Vec<PathBuf> {
        // The file name alone does not show that it is the same file.
        let least = if file.is_absolute() { 2 } else { 1 };
        let mut paths = copies(&self.recordings, file, least);
        if file.is_relative() {
            paths.retain(|path| path.ends_with(file));
        }
        paths
    }
}

/// A file below directories: by its whole path, then without its first directories, as long as
/// `least` parts are left.
fn copies(directories: &[PathBuf], file: &Path, least: usize) -> Vec<PathBuf> {
    let parts = file.components();
    let parts: Vec<_> = parts
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    let starts = 0..(parts.len() + 1).saturating_sub(least);
    let copy = |directory: &Path, start: usize| {
        let parts = parts.iter().skip(start);
        parts.fold(directory.to_owned(), |path, part| path.join(part))
    };
    let below = directories
        .iter()
        .flat_map(|directory| starts.clone().map(move |start| copy(directory, start)));
    below.collect()
}

/// The places that were tried, and the remedy.
impl fmt::Display for NoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More places than this are not listed.
        const MOST: usize = 4;
        f.write_str("no source: ")?;
        for (index, (path, error)) in self.tried.iter().take(MOST).enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let why = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "not there".into(),
                _ => error.to_string(),
            };
            write!(f, "{separator}{} ({why})", path.display())?;
        }
        if let Some(more @ 1..) = self.tried.len().checked_sub(MOST) {
            write!(f, " and {more} more")?;
        }
        f.write_str("; --source-path DIR or --source-map FROM=TO say where it is")
    }
}

fn lines(file: File) -> io::Result<Vec<String>> {
    /// Generated files are large, but not that large.
    const LARGEST: u64 = 64 << 20;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn check(sources: &Sources, file: &str, expected: &[&str]) {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(sources.candidates(Path::new(file)), expected, "{file}");
    }

    #[test]
    fn places_to_look() {
        let none = Sources::default();
        check(&none, "/src/a.c", &["/src/a.c"]);
        check(&none, "a.c", &["a.c"]);
        let some = Sources {
            maps: vec![("/rustc/abc".into(), "/std".into())],
            directories: vec!["/w".into()],
            ..Sources::default()
        };
        check(
            &some,
            "/rustc/abc/core/a.rs",
            &[
                "/std/core/a.rs",
                "/w/rustc/abc/core/a.rs",
                "/w/abc/core/a.rs",
                "/w/core/a.rs",
                "/w/a.rs",
                "/rustc/abc/core/a.rs",
            ],
        );
        check(
            &some,
            "/rustc/abcd/a.rs",
            &[
                "/w/rustc/abcd/a.rs",
                "/w/abcd/a.rs",
                "/w/a.rs",
                "/rustc/abcd/a.rs",
            ],
        );
    }

    #[test]
    fn places_beside_the_recording() {
        let beside = Sources::beside(&["/r/prof.data".into(), "prof.data".into()]);
        let check = |file: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(
                beside.beside_recordings(Path::new(file)),
                expected,
                "{file}"
            );
        };
        check("src/a.py", &["/r/src/a.py", "src/a.py"]);
        // Not up out of the directory, and not by its name alone.
        check("../a.py", &[]);
        check("/a.py", &[]);
        let all = ["/r/b/src/a.py", "/r/src/a.py", "b/src/a.py", "src/a.py"];
        check("/b/src/a.py", &all);
    }

    #[test]
    fn files_beside_the_recording_are_found_last() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("src")).unwrap();
        let copy = directory.path().join("src/a.py");
        fs::write(&copy, "copy\n").unwrap();
        let beside = Sources::beside(&[directory.path().join("prof.data")]);
        for name in ["src/a.py", "/nonexistent/src/a.py"] {
            assert_eq!(beside.find(name).unwrap().path, copy, "{name}");
        }
        let own = directory.path().join("a.py");
        fs::write(&own, "own\n").unwrap();
        let found = beside.find(own.to_str().unwrap()).unwrap();
        assert_eq!(found.path, own);
    }

    #[test]
    fn attempts_are_reported() {
        let missing = Sources::default().find("/nonexistent/a.c").unwrap_err();
        assert_eq!(
            missing.to_string(),
            "no source: /nonexistent/a.c (not there); --source-path DIR or --source-map FROM=TO \
             say where it is"
        );
        let device = Sources::default().find("/dev/zero").unwrap_err();
        assert!(
            device.to_string().contains("not a regular file"),
            "{device}"
        );
    }

    /// Foreign debug info may name files that only root can read.
    #[test]
    fn root_shows_private_files_only_of_directories_that_were_named() {
        if !fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.c");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let name = path.to_str().unwrap();
        let refused = Sources::default().find(name).unwrap_err().to_string();
        assert!(refused.contains("not everybody may read it"), "{refused}");
        let named = Sources {
            directories: vec![directory.path().into()],
            ..Sources::default()
        };
        named.find(name).unwrap();
        // No way up out of it.
        let inner = Sources {
            directories: vec![directory.path().join("inner")],
            ..Sources::default()
        };
        inner
            .find(&format!("{}/inner/../a.c", directory.path().display()))
            .unwrap_err();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        Sources::default().find(name).unwrap();
    }

    #[test]
    fn lines_are_numbered_from_one() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a.c"), "one\r\ntwo\n").unwrap();
        let sources = Sources {
            directories: vec![directory.path().into()],
            ..Sources::default()
        };
        let file = sources.find("/elsewhere/a.c").unwrap();
        assert_eq!(file.path, directory.path().join("a.c"));
        let lines = [0, 1, 2, 3].map(|number| file.line(number));
        assert_eq!(lines, [None, Some("one"), Some("two"), None]);
    }
}
