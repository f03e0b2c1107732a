//! /proc/PID/maps.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The mappings of a process at the time of reading: proc_pid_maps(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(pub(crate) Vec<u8>);

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsEntry<'a> {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// Its permissions.
    pub permissions: Permissions,
    /// The offset in the file where it begins, in bytes.
    pub file_offset: u64,
    /// The device of the file, major and minor.
    pub device: (u32, u32),
    /// The file's inode; 0 for memory without a file.
    pub inode: u64,
    /// The file's path, `[vdso]` and the like, or nothing.
    pub path: Cow<'a, OsStr>,
}

/// `rwxs` or `r--p`: permissions of a mapping, and whether writes are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions([u8; 4]);

impl Permissions {
    /// As in mmap(2): 1 to read, 2 to write, 4 to execute.
    pub fn protection(self) -> u32 {
        let bit = |index: usize, letter: u8| u32::from(self.0[index] == letter) << index;
        bit(0, b'r') | bit(1, b'w') | bit(2, b'x')
    }

    /// Whether its code may be executed.
    pub fn executable(self) -> bool {
        self.0[2] == b'x'
    }

    /// Whether other processes see writes.
    pub fn shared(self) -> bool {
        self.0[3] == b's'
    }
}

impl Maps {
    /// Parses the text of the file.
    pub fn parse(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// All mappings, in ascending order; invalid lines are skipped.
    pub fn iter(&self) -> impl Iterator<Item = MapsEntry<'_>> {
        let lines = self.0.split(|&byte| byte == b'\n');
        lines.filter_map(MapsEntry::parse)
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<MapsEntry<'_>> {
        self.iter().find(|entry| entry.addresses.contains(&address))
    }

    /// The first mapping with such a path or name.
    pub fn named(&self, path: &str) -> Option<MapsEntry<'_>> {
        self.iter().find(|entry| *entry.path == *path)
    }
}

impl<'a> MapsEntry<'a> {
    /// `55d0c0a00000-55d0c0a28000 r-xp 00001000 fe:01 1234    /usr/bin/x`
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut field = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = field()?.split_once('-')?;
        let permissions = field()?.as_bytes().try_into().ok()?;
        let file_offset = hex(field()?)?;
        let (major, minor) = field()?.split_once(':')?;
        let inode = field()?.parse().ok()?;
        let path = fields.next().unwrap_or_default();
        Some(Self {
            addresses: hex(start)?..hex(end)?,
            permissions: Permissions(permissions),
            file_offset,
            device: (hex(major)? as u32, hex(minor)? as u32),
            inode,
            path: unescape(path.trim_ascii_start()),
        })
    }
}

pub(crate) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The kernel writes a newline in a path as `\012`.
fn unescape(path: &[u8]) -> Cow<'_, OsStr> {
    const NEWLINE: &[u8] = br"\012";
    if !path.windows(NEWLINE.len()).any(|part| part == NEWLINE) {
        return Cow::Borrowed(OsStr::from_bytes(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(NEWLINE) {
            Some(after) => {
                bytes.push(b'\n');
                rest = after;
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    Cow::Owned(OsString::from_vec(bytes))
}

/// A path without the ` (deleted)` that the kernel appends to the path of a removed file.
pub fn without_deleted(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line =
            b"55d0c0a00000-55d0c0a28000 r-xp 00001000 fe:01 1234                  /usr/bin/a b";
        let entry = MapsEntry::parse(line).expect("a line");
        assert_eq!(entry.addresses, 0x55d0_c0a0_0000..0x55d0_c0a2_8000);
        assert_eq!((entry.file_offset, entry.inode), (0x1000, 1234));
        assert_eq!(
            (entry.device, &*entry.path),
            ((0xfe, 1), OsStr::new("/usr/bin/a b"))
        );
        assert_eq!(entry.permissions.protection(), 5);
        assert!(entry.permissions.executable() && !entry.permissions.shared());
        let anonymous = MapsEntry::parse(b"7f0000000000-7f0000001000 rw-s 00000000 00:00 0 ");
        let is_shared = |entry: MapsEntry<'_>| entry.path.is_empty() && entry.permissions.shared();
        assert!(anonymous.is_some_and(is_shared));
        for damaged in [
            "",
            "x",
            "1-2",
            "1-2 r-xp 0 0:0",
            "1-2 r-xp 0 00 0",
            "1-2 r 0 0:0 0",
        ] {
            assert_eq!(MapsEntry::parse(damaged.as_bytes()), None, "{damaged}");
        }
        assert_eq!(unescape(br"a\012b\01"), OsStr::new("a\nb\\01"));
    }

    #[test]
    fn mappings_are_found_by_address_and_name() {
        let text = "1000-2000 r--p 0 0:0 0\n7ff0-8000 rw-p 0 0:0 0   [stack]\nnonsense\n";
        let maps = Maps::parse(text);
        let addresses = |entry: Option<MapsEntry<'_>>| Some(entry?.addresses);
        assert_eq!(addresses(maps.find(0x7ff8)), Some(0x7ff0..0x8000));
        assert_eq!(addresses(maps.find(0x2000)), None);
        assert_eq!(addresses(maps.named("[stack]")), Some(0x7ff0..0x8000));
        let here = maps_of_ours()
            .find(text.as_ptr() as u64)
            .map(|entry| entry.inode);
        assert!(here.is_some_and(|inode| inode != 0));
    }

    fn maps_of_ours() -> Maps {
        crate::Task::this_process().maps().unwrap()
    }

    #[test]
    fn a_path_may_be_deleted() {
        assert_eq!(without_deleted(Path::new("/a (deleted)")), Path::new("/a"));
        assert_eq!(without_deleted(Path::new("/a")), Path::new("/a"));
    }
}
