//! Which release of a runtime a command would start, from the files beside its executable.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prof_recorder::Program;

/// The release of Erlang/OTP that `erl` belongs to, such as `25`.
pub(super) fn erlang_release() -> Option<u32> {
    let erl = on_path("erl")?;
    // `releases/start_erl.data` beside `bin` contains `13.1.5 25`.
    let root = erl.parent().and_then(Path::parent)?;
    let versions = fs::read_to_string(root.join("releases/start_erl.data")).ok()?;
    versions.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What makes Node write a perf map and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeHelp {
    /// Flags that `NODE_OPTIONS` may contain.
    Variable,
    /// The same flags, and those that send V8's log, which they cause, to a temporary file without
    /// a name: only arguments may contain these.
    Arguments,
}

/// How to help the Node that a command starts. `None`: its release is unknown or names nothing, or
/// the command starts it with arguments that prof cannot change.
pub(super) fn node_help(program: &Program) -> Option<NodeHelp> {
    let start = Path::new(
        program
            .argv
            .first()
            .map_or(OsStr::new(""), OsString::as_os_str),
    );
    let is_node = start
        .file_name()
        .is_some_and(|name| name == "node" || name == "nodejs");
    let node = match (is_node, start.components().nth(1)) {
        (true, Some(_)) => fs::canonicalize(start).ok(),
        (true, None) => on_path(start.to_str()?),
        (false, _) => on_path("node"),
    };
    help_for(&node?).filter(|&help| is_node || help == NodeHelp::Variable)
}

fn help_for(node: &Path) -> Option<NodeHelp> {
    match node_version(node) {
        Some((18, minor)) => (minor >= 19).then_some(NodeHelp::Variable),
        Some((20, minor)) => (minor >= 10).then_some(NodeHelp::Variable),
        Some((21 | 22, _)) => Some(NodeHelp::Variable),
        Some((23..=26, _)) => Some(NodeHelp::Arguments),
        Some(_) => None,
        None => match node_abi(node)? {
            NODE_18..=NODE_22 => Some(NodeHelp::Variable),
            NODE_23..=NODE_26 => Some(NodeHelp::Arguments),
            _ => None,
        },
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

/// Versions of the library: <https://nodejs.org/en/about/previous-releases>
const NODE_18: u32 = 108;
const NODE_22: u32 = 127;
const NODE_23: u32 = 131;
const NODE_26: u32 = 147;

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
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
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

    /// What these releases do was tried: see `tests/tests/runtimes.rs` for the installed ones.
    #[test]
    fn node_is_asked_only_where_it_writes_a_map_and_nothing_else() {
        let check = |header, executable: &[u8], expected| {
            let (_root, node) = install(header, executable);
            assert_eq!(help_for(&node), expected, "{header:?}");
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
            check(Some(version), b"", Some(NodeHelp::Variable));
        }
        for version in [(23, 0), (24, 21), (25, 9), (26, 10)] {
            check(Some(version), b"", Some(NodeHelp::Arguments));
        }
        for version in [(12, 22), (16, 20), (18, 18), (20, 9), (27, 0)] {
            check(Some(version), b"", None);
        }
        let variable = Some(NodeHelp::Variable);
        check(None, b"\x7fELF\0libnode.so.108\0libc.so.6\0", variable);
        check(None, b"\x7fELF\0libnode.so.127\0", variable);
        check(None, b"\x7fELF\0libnode.so.93\0", None);
        let arguments = Some(NodeHelp::Arguments);
        check(None, b"\x7fELF\0libnode.so.137\0", arguments);
        check(None, b"\x7fELF\0libnode.so.148\0", None);
        check(None, b"#!/bin/sh\nexec nodenv exec node", None);
    }

    #[test]
    fn a_command_with_a_path_to_node_decides_by_that_node() {
        let (_new, new) = install(Some((24, 0)), b"");
        let (_old, old) = install(Some((22, 0)), b"");
        let help = |node: &Path| node_help(&Program::new([node]));
        assert_eq!(help(&old), Some(NodeHelp::Variable));
        assert_eq!(help(&new), Some(NodeHelp::Arguments));
    }
}
