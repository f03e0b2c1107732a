//! What was there before the first record: running processes and the kernel, told as the kernel
//! would have told it.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use object::{Object, ReadCache};
use prof_events::system;
use prof_filemap::foreign;
use prof_model::{BuildId, FileIdentity, Pid, Tid};
use prof_perfdata::{Comm, CpuMode, Mmap, Record, Stamp};

/// Hands COMM and MMAP2 records of a running process to `each`.
///
/// The events must be sampling already: what is mapped while this reads is then told by the
/// kernel too, and hearing of it twice does no harm. A process that has ended yields nothing.
pub(crate) fn process(pid: Pid, ids: &mut BuildIds, each: &mut dyn FnMut(&Record<'_>)) {
    if pid == 0 {
        each(&named(0, 0, b"swapper"));
    }
    for tid in system::threads(pid).unwrap_or_default() {
        let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        let name = name.strip_suffix(b"\n").unwrap_or(&name);
        each(&named(pid, tid, name));
    }
    mappings(pid, ids, |_| true, each);
}

fn named(pid: Pid, tid: Tid, name: &[u8]) -> Record<'_> {
    Record::Comm(Comm {
        stamp: Stamp::default(),
        pid,
        tid,
        exec: false,
        name: OsStr::from_bytes(name),
    })
}

/// The build ids of mapped files, by device and inode: most are mapped by many.
#[derive(Debug, Default)]
pub(crate) struct BuildIds(HashMap<((u32, u32), u64), Option<BuildId>>);

/// The process of a thread; `None` if it has ended.
pub(crate) fn process_of(tid: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// All processes that there are, in ascending order; 0 is what CPUs do that have nothing to do.
pub(crate) fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<Pid> = pids.chain([0]).collect();
    pids.sort_unstable();
    pids
}

/// The children of these processes, and theirs, without those that are `known` and what came of them.
/// Where the kernel does not tell of children (CONFIG_PROC_CHILDREN), there are none.
pub(crate) fn descendants(of: &[Pid], known: &BTreeSet<Pid>) -> BTreeSet<Pid> {
    let mut found = BTreeSet::new();
    let mut parents = of.to_vec();
    while let Some(parent) = parents.pop() {
        for tid in system::threads(parent).unwrap_or_default() {
            let children = fs::read_to_string(format!("/proc/{parent}/task/{tid}/children"));
            let children = children.unwrap_or_default();
            let children = children.split_ascii_whitespace();
            for child in children.filter_map(|child| child.parse().ok()) {
                if !known.contains(&child) && found.insert(child) {
                    parents.push(child);
                }
            }
        }
    }
    found
}

/// Hands MMAP2 records of a process's code to `each`: of those of its mappings that are `wanted`,
/// by start, end, offset and inode.
pub(crate) fn mappings(
    pid: Pid,
    ids: &mut BuildIds,
    mut wanted: impl FnMut((u64, u64, u64, u64)) -> bool,
    each: &mut dyn FnMut(&Record<'_>),
) {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mappings = maps
        .split(|&byte| byte == b'\n')
        .filter_map(MapsLine::parse);
    for line in mappings.filter(|line| line.executable()) {
        if wanted((line.start, line.end, line.file_offset, line.inode)) {
            let file = (line.device, line.inode);
            let id = ids.0.entry(file).or_insert_with(|| line.build_id(pid));
            each(&Record::Mmap(line.record(pid, *id)));
        }
    }
}

/// Reads what is read here of /proc and /sys, for `fuzzing`.
pub(crate) fn fuzz(bytes: &[u8]) {
    for line in bytes.split(|&byte| byte == b'\n') {
        if let Some(line) = MapsLine::parse(line) {
            line.record(1, None);
        }
    }
    let _ = kernel_text(bytes);
    note_build_id(bytes);
}

/// The COMM record of a command that has not called `exec` yet.
pub(crate) fn held_command(pid: Pid) -> Record<'static> {
    named(pid, pid, b"prof-exec")
}

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MapsLine {
    start: u64,
    end: u64,
    protection: u32,
    shared: bool,
    file_offset: u64,
    device: (u32, u32),
    inode: u64,
    path: OsString,
}

impl MapsLine {
    const READ: u32 = 1;
    const WRITE: u32 = 2;
    const EXECUTE: u32 = 4;

    /// `55d0c0a00000-55d0c0a28000 r-xp 00001000 fe:01 1234    /usr/bin/x`
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut field = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = field()?.split_once('-')?;
        let permissions = field()?.as_bytes();
        let file_offset = hex(field()?)?;
        let (major, minor) = field()?.split_once(':')?;
        let inode = field()?.parse().ok()?;
        let path = fields.next().unwrap_or_default();
        let flag = |index: usize, letter: u8| permissions.get(index) == Some(&letter);
        let protection = [
            (flag(0, b'r'), Self::READ),
            (flag(1, b'w'), Self::WRITE),
            (flag(2, b'x'), Self::EXECUTE),
        ];
        Some(Self {
            start: hex(start)?,
            end: hex(end)?,
            protection: protection
                .into_iter()
                .filter_map(|(set, bit)| set.then_some(bit))
                .sum(),
            shared: flag(3, b's'),
            file_offset,
            device: (hex(major)? as u32, hex(minor)? as u32),
            inode,
            path: unescape(path.trim_ascii_start()),
        })
    }

    fn executable(&self) -> bool {
        self.protection & Self::EXECUTE != 0
    }

    fn record(&self, pid: Pid, build_id: Option<BuildId>) -> Mmap<'_> {
        const MAP_SHARED: u32 = 1;
        const MAP_PRIVATE: u32 = 2;
        let identity = FileIdentity {
            device: self.device,
            inode: self.inode,
            generation: 0,
        };
        let path: &OsStr = match self.path.as_bytes() {
            // What the kernel calls memory without a file in its records.
            b"" => OsStr::new("//anon"),
            _ => &self.path,
        };
        Mmap {
            stamp: Stamp::default(),
            mode: CpuMode::User,
            pid,
            tid: pid,
            address: self.start,
            length: self.end.saturating_sub(self.start),
            file_offset: self.file_offset,
            executable: true,
            protection: Some(self.protection),
            flags: Some(if self.shared { MAP_SHARED } else { MAP_PRIVATE }),
            build_id,
            identity: (build_id.is_none() && self.inode != 0).then_some(identity),
            path,
        }
    }

    /// The build id of the file that is really mapped: another one may be at its path by now.
    fn build_id(&self, pid: Pid) -> Option<BuildId> {
        if self.inode == 0 {
            return None;
        }
        let mapped = format!("/proc/{pid}/map_files/{:x}-{:x}", self.start, self.end);
        let path = self.path.as_bytes();
        let path = Path::new(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)));
        let seen = Path::new("/proc")
            .join(pid.to_string())
            .join("root")
            .join(path);
        // map_files takes privileges that plain users lack.
        let file = foreign::open(Path::new(&mapped)).or_else(|_| foreign::open(&seen));
        build_id_of(file.ok()?)
    }
}

/// The build id of an ELF file.
pub(crate) fn build_id_of(file: File) -> Option<BuildId> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    BuildId::new(elf.build_id().ok()??)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The kernel writes a newline in a path as `\012`.
fn unescape(path: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(br"\012") {
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
    OsString::from_vec(bytes)
}

/// The kernel's code, as perf names it, if its addresses are told to us (kptr_restrict).
pub(crate) fn kernel(each: &mut dyn FnMut(&Record<'_>)) {
    let Some((start, end)) = File::open("/proc/kallsyms").ok().and_then(|file| {
        kernel_text(BufReader::with_capacity(1 << 16, file))
            .ok()
            .flatten()
    }) else {
        return;
    };
    each(&Record::Mmap(Mmap {
        stamp: Stamp::default(),
        mode: CpuMode::Kernel,
        pid: -1,
        tid: 0,
        address: start,
        length: end - start,
        file_offset: start,
        executable: true,
        protection: Some(MapsLine::EXECUTE),
        flags: None,
        build_id: kernel_build_id(),
        identity: None,
        path: OsStr::new("[kernel.kallsyms]_text"),
    }));
}

/// The addresses of `_text` and `_etext`, which kallsyms lists like any symbol.
fn kernel_text(mut kallsyms: impl BufRead) -> io::Result<Option<(u64, u64)>> {
    let (mut start, mut end) = (None, None);
    let mut line = Vec::new();
    while (start.is_none() || end.is_none()) && kallsyms.read_until(b'\n', &mut line)? > 0 {
        let mut fields = line.trim_ascii_end().split(|&byte| byte == b' ');
        let address = fields.next();
        let symbol = match fields.nth(1) {
            Some(b"_text") => &mut start,
            Some(b"_etext") => &mut end,
            _ => {
                line.clear();
                continue;
            }
        };
        let address = address.and_then(|text| std::str::from_utf8(text).ok());
        // Zeros are what those see who may not know.
        *symbol = address.and_then(hex).filter(|&address| address != 0);
        line.clear();
    }
    Ok(start.zip(end).filter(|(start, end)| start < end))
}

/// The running kernel's build id, from the notes that it shows.
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    note_build_id(&fs::read("/sys/kernel/notes").ok()?)
}

/// The description of the `NT_GNU_BUILD_ID` note among ELF notes.
fn note_build_id(mut notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let field = |at: usize| {
            let bytes = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let name_size = field(0)? as usize;
        let size = field(4)? as usize;
        let name = rest.get(..name_size)?;
        let description = rest.get(name_size.next_multiple_of(4)..)?;
        if name == b"GNU\0" && field(8)? == NT_GNU_BUILD_ID {
            return BuildId::new(description.get(..size)?);
        }
        notes = description.get(size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_lines() {
        let line =
            b"55d0c0a00000-55d0c0a28000 r-xp 00001000 fe:01 1234                  /usr/bin/a b";
        let parsed = MapsLine::parse(line).expect("a line");
        assert_eq!(
            (parsed.start, parsed.end),
            (0x55d0_c0a0_0000, 0x55d0_c0a2_8000)
        );
        assert_eq!((parsed.file_offset, parsed.inode), (0x1000, 1234));
        assert_eq!(parsed.device, (0xfe, 1));
        assert_eq!(parsed.path, "/usr/bin/a b");
        assert!(parsed.executable() && !parsed.shared);
        let anonymous = MapsLine::parse(b"7f0000000000-7f0000001000 rw-s 00000000 00:00 0 ");
        assert!(anonymous.is_some_and(|line| line.path.is_empty() && line.shared));
        for damaged in ["", "x", "1-2", "1-2 r-xp 0 0:0", "1-2 r-xp 0 00 0"] {
            assert_eq!(MapsLine::parse(damaged.as_bytes()), None, "{damaged}");
        }
        assert_eq!(unescape(br"a\012b\01"), "a\nb\\01");
    }

    #[test]
    fn we_know_ourselves() {
        let pid = std::process::id() as Pid;
        let (mut names, mut own) = (0, None);
        let exe = std::env::current_exe().expect("a path");
        let mut ids = BuildIds::default();
        process(pid, &mut ids, &mut |record| match record {
            Record::Comm(_) => names += 1,
            Record::Mmap(mmap) if mmap.path == exe => own = mmap.build_id,
            _ => {}
        });
        assert!(names > 0);
        assert_eq!(own, File::open(&exe).ok().and_then(build_id_of));
        process(i32::MAX, &mut ids, &mut |_| {
            panic!("there is no such process")
        });
    }

    #[test]
    fn kernel_text_is_between_its_symbols() {
        let check = |text: &str, expected| {
            assert_eq!(kernel_text(text.as_bytes()).ok().flatten(), expected);
        };
        check("f0 T _text\nf8 T x\nff T _etext\n", Some((0xf0, 0xff)));
        check("0 T _text\n0 T _etext\n", None);
        check("f0 T _text\n", None);
        check("", None);
    }

    #[test]
    fn notes_are_searched_for_the_build_id() {
        let mut notes = Vec::new();
        for (kind, name, description) in [
            (1_u32, &b"Linux\0\0\0"[..], &[9_u8; 4][..]),
            (3, b"GNU\0", &[7; 20]),
        ] {
            let name_size = if kind == 1 { 6_u32 } else { 4 };
            notes.extend(name_size.to_ne_bytes());
            notes.extend((description.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            notes.extend(name);
            notes.extend(description);
        }
        assert_eq!(note_build_id(&notes), BuildId::new(&[7; 20]));
        for length in 0..notes.len() {
            assert_eq!(note_build_id(&notes[..length]), None, "{length}");
        }
    }
}
