//! Source files, found by the paths that compilers left in debug info.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Where to look for source files.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What to put in the place of a path's beginning: whole components are compared.
    pub maps: Vec<(PathBuf, PathBuf)>,
    /// Directories that hold copies: a file is looked for there by its whole path, then without
    /// its first directories, one after the other.
    pub directories: Vec<PathBuf>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its lines, without their ends.
    pub lines: Vec<String>,
}

/// Where a source file was looked for in vain.
#[derive(Debug)]
pub struct NoSource {
    /// The paths that were tried, in order, and what came of it.
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
    /// Reads the file that the compiler knew by this path.
    ///
    /// # Errors
    /// [`NoSource`] if it is nowhere, or can't be read.
    pub fn find(&self, file: &str) -> Result<SourceFile, NoSource> {
        let mut tried = Vec::new();
        for path in self.candidates(Path::new(file)) {
            match read(&path) {
                Ok(lines) => return Ok(SourceFile { path, lines }),
                Err(error) => tried.push((path, error)),
            }
        }
        Err(NoSource { tried })
    }

    /// The paths to try, each once.
    fn candidates(&self, file: &Path) -> Vec<PathBuf> {
        let mapped = self.maps.iter().filter_map(|(from, to)| {
            let rest = file.strip_prefix(from).ok()?;
            Some(to.join(rest))
        });
        let parts: Vec<Component<'_>> = file
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let copies = self.directories.iter().flat_map(|directory| {
            let copy = |start: usize| {
                let parts = parts.iter().skip(start);
                parts.fold(directory.clone(), |path, part| path.join(part))
            };
            (0..parts.len()).map(copy).collect::<Vec<_>>()
        });
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in mapped.chain(copies).chain([file.to_path_buf()]) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }
}

/// What was tried, and what helps.
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

fn read(path: &Path) -> io::Result<Vec<String>> {
    /// Generated files are large, but not that large.
    const LARGEST: u64 = 64 << 20;
    // Debug info may name anything: pipes wait and devices go on for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LARGEST)
        .read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
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
    fn what_was_tried_is_told() {
        let missing = Sources::default().find("/nonexistent/a.c").unwrap_err();
        assert_eq!(
            missing.to_string(),
            "no source: /nonexistent/a.c (not there); --source-path DIR or --source-map FROM=TO \
             say where it is"
        );
        let device = Sources::default().find("/dev/zero").unwrap_err();
        assert!(device.to_string().contains("not a file"), "{device}");
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
