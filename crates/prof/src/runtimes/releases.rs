//! Which release of a runtime a command would start, from the files beside its executable.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{env, ops::RangeInclusive};

use prof_recorder::Program;

/// The release of Erlang/OTP that `erl` belongs to, such as `25`.
pub(super) fn erlang_release() -> Option<u32> {
    let erl = on_path("erl")?;
    // `releases/start_erl.data` beside `bin` contains `13.1.5 25`.
    let root = erl.parent().and_then(Path::parent)?;
    let versions = fs::read_to_string(root.join("releases/start_erl.data")).ok()?;
    versions.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether `--perf-basic-prof-only-functions` makes Node write a perf map and nothing else. Other
/// releases write V8's log besides, into the working directory or, if that is read-only, to the
/// standard output; or their map is empty.
pub(super) fn does_node_write_only_a_map(program: &Program) -> bool {
    let start = Path::new(
        program
            .argv
            .first()
            .map_or(OsStr::new(""), OsString::as_os_str),
    );
    let is_node = start
        .file_name()
        .is_some_and(|name| name == "node" || name == "nodejs");
    let node = match is_node && start.components().nth(1).is_some() {
        true => fs::canonicalize(start).ok(),
        false => on_path("node"),
    };
    node.is_some_and(|node| writes_only_a_map(&node))
}

fn writes_only_a_map(node: &Path) -> bool {
    match node_version(node) {
        Some((18, minor)) => minor >= 19,
        Some((20, minor)) => minor >= 10,
        Some((major, _)) => matches!(major, 21 | 22),
        None => node_abi(node).is_some_and(|abi| NODE_18_TO_22.contains(&abi)),
    }
}

/// The major and the minor version by Node's headers, which its own packages install.
fn node_version(node: &Path) -> Option<(u32, u32)> {
    let root = node.parent().and_then(Path::parent)?;
    let header = fs::read_to_string(root.join("include/node/node_version.h")).ok()?;
    let value = |name: &str| {
        let mut lines = header.lines().map(str::split_ascii_whitespace);
        let words = lines.find(|words| words.clone().nth(1) == Some(name))?;
        words.last()?.parse().ok()
    };
    Some((value("NODE_MAJOR_VERSION")?, value("NODE_MINOR_VERSION")?))
}

/// The versions of the library: <https://nodejs.org/en/about/previous-releases>
const NODE_18_TO_22: RangeInclusive<u32> = 108..=127;

/// The version of the library `libnode.so.108` that a small executable is linked with, as Debian
/// builds it.
fn node_abi(node: &Path) -> Option<u32> {
    const LARGEST: u64 = 1 << 20;
    const LIBRARY: &[u8] = b"libnode.so.";
    if fs::metadata(node).ok()?.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(node).ok()?;
    let found = bytes
        .windows(LIBRARY.len())
        .position(|part| part == LIBRARY)?;
    let digits = bytes.get(found + LIBRARY.len()..)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    OsStr::from_bytes(&digits[..end]).to_str()?.parse().ok()
}

/// The file behind the first program of this name.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|directory| directory.join(name));
    places.find_map(|place| fs::canonicalize(place).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(header: Option<(u32, u32)>, executable: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("bin/node");
        fs::create_dir_all(node.parent().unwrap()).unwrap();
        fs::write(&node, executable).unwrap();
        if let Some((major, minor)) = header {
            let text = format!(
                "#ifndef X\n\n#define NODE_MAJOR_VERSION {major}\n#define NODE_MINOR_VERSION \
                 {minor}\n#define NODE_PATCH_VERSION 2\n"
            );
            fs::create_dir_all(root.path().join("include/node")).unwrap();
            fs::write(root.path().join("include/node/node_version.h"), text).unwrap();
        }
        (root, node)
    }

    /// What these releases do was tried: see `tests/tests/runtimes.rs` for the installed one.
    #[test]
    fn node_is_asked_only_where_it_writes_a_map_and_nothing_else() {
        let check = |header, executable: &[u8], expected| {
            let (_root, node) = install(header, executable);
            assert_eq!(writes_only_a_map(&node), expected, "{header:?}");
        };
        for version in [
            (18, 19),
            (18, 20),
            (20, 10),
            (20, 20),
            (21, 0),
            (22, 0),
            (22, 23),
        ] {
            check(Some(version), b"", true);
        }
        for version in [
            (12, 22),
            (16, 20),
            (18, 18),
            (20, 9),
            (23, 0),
            (24, 21),
            (26, 10),
        ] {
            check(Some(version), b"", false);
        }
        check(None, b"\x7fELF\0libnode.so.108\0libc.so.6\0", true);
        check(None, b"\x7fELF\0libnode.so.127\0", true);
        check(None, b"\x7fELF\0libnode.so.93\0", false);
        check(None, b"\x7fELF\0libnode.so.137\0", false);
        check(None, b"#!/bin/sh\nexec nodenv exec node", false);
    }

    #[test]
    fn a_command_with_a_path_to_node_decides_by_that_node() {
        let (_new, new) = install(Some((24, 0)), b"");
        let (_old, old) = install(Some((22, 0)), b"");
        assert!(does_node_write_only_a_map(&Program::new([&old])));
        assert!(!does_node_write_only_a_map(&Program::new([&new])));
    }
}
