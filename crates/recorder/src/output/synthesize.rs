//! The state before the first record: running processes and the kernel, in the records that the
//! kernel would have written.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef, elf};
use prof_filemap::foreign;
use prof_model::{BuildId, FileIdentity, Module, Pid, Tid};
use prof_perfdata::{Comm, CpuMode, Mmap, Record, Stamp};
use prof_procfs::{MapsEntry, Task, kernel};

/// Passes COMM and MMAP2 records of a running process to `each`.
///
/// The events must be enabled already: mappings made while this reads are then reported by the
/// kernel, too, and a duplicate does no harm. A process that has ended yields nothing.
pub(crate) fn process(pid: Pid, ids: &mut BuildIds, each: &mut dyn FnMut(&Record<'_>)) {
    if pid == 0 {
        each(&name(0, 0, b"swapper"));
    }
    let threads = Task::of(pid).threads().unwrap_or_default();
    for &tid in &threads {
        each(&name(pid, tid, &Task::thread(pid, tid).name()));
    }
    // The name of a process is that of its main thread, even if only others still run.
    if !threads.is_empty() && !threads.contains(&pid) {
        each(&name(pid, pid, &Task::of(pid).name()));
        each(&exited(pid));
    }
    mappings(pid, ids, |_| true, each);
}

/// The COMM record of a thread.
pub(crate) fn name(pid: Pid, tid: Tid, name: &[u8]) -> Record<'_> {
    Record::Comm(Comm {
        stamp: Stamp::default(),
        pid,
        tid,
        exec: false,
        name: OsStr::from_bytes(name),
    })
}

/// The EXIT record of a main thread.
fn exited(pid: Pid) -> Record<'static> {
    Record::Exit(prof_perfdata::Task {
        stamp: Stamp::default(),
        pid,
        tid: pid,
        parent_pid: pid,
        parent_tid: pid,
        time: 0,
        existed: false,
    })
}

/// The build ids of mapped files, by device and inode: most files are mapped by many processes.
#[derive(Debug, Default)]
pub(crate) struct BuildIds(HashMap<((u32, u32), u64), Option<BuildId>>);

/// A mapping, as far as needed to recognize it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MappingKey {
    addresses: Range<u64>,
    file_offset: u64,
    inode: u64,
}

/// Passes MMAP2 records of a process's code to `each`: of those mappings that `accept` returns true
/// for.
pub(crate) fn mappings(
    pid: Pid,
    ids: &mut BuildIds,
    mut accept: impl FnMut(MappingKey) -> bool,
    each: &mut dyn FnMut(&Record<'_>),
) {
    let maps = Task::of(pid).maps().unwrap_or_default();
    for entry in maps.iter().filter(|entry| entry.permissions.executable()) {
        let key = MappingKey {
            addresses: entry.addresses.clone(),
            file_offset: entry.file_offset,
            inode: entry.inode,
        };
        if accept(key) {
            let file = (entry.device, entry.inode);
            let id = ids.0.entry(file).or_insert_with(|| mapped_id(pid, &entry));
            each(&Record::Mmap(mmap(pid, &entry, *id)));
        }
    }
}

/// The COMM record of a command that has not called `exec` yet.
pub(crate) fn held_command(pid: Pid) -> Record<'static> {
    name(pid, pid, b"prof-exec")
}

/// The record of code of a file, from this offset on, that was mapped before sampling.
pub(crate) fn code_of<'a>(
    pid: Pid,
    module: &'a Module,
    addresses: &Range<u64>,
    file_offset: u64,
) -> Mmap<'a> {
    Mmap {
        stamp: Stamp::default(),
        mode: CpuMode::User,
        pid,
        tid: pid,
        address: addresses.start,
        length: addresses.end.saturating_sub(addresses.start),
        file_offset,
        executable: true,
        protection: None,
        flags: None,
        build_id: module.build_id,
        identity: module.identity,
        path: module.path.as_os_str(),
    }
}

/// The record that the kernel writes for this mapping.
fn mmap<'a>(pid: Pid, entry: &'a MapsEntry<'_>, build_id: Option<BuildId>) -> Mmap<'a> {
    const MAP_SHARED: u32 = 1;
    const MAP_PRIVATE: u32 = 2;
    let identity = FileIdentity {
        device: entry.device,
        inode: entry.inode,
        generation: 0,
    };
    let path: &OsStr = match entry.path.as_bytes() {
        // The name in the kernel's records for memory without a file.
        b"" => OsStr::new("//anon"),
        _ => &entry.path,
    };
    let Range { start, end } = entry.addresses;
    let flags = match entry.permissions.shared() {
        true => MAP_SHARED,
        false => MAP_PRIVATE,
    };
    Mmap {
        stamp: Stamp::default(),
        mode: CpuMode::User,
        pid,
        tid: pid,
        address: start,
        length: end.saturating_sub(start),
        file_offset: entry.file_offset,
        executable: true,
        protection: Some(entry.permissions.protection()),
        flags: Some(flags),
        build_id,
        identity: (build_id.is_none() && entry.inode != 0).then_some(identity),
        path,
    }
}

/// The build id of the mapped file: another file may have its path by now.
fn mapped_id(pid: Pid, entry: &MapsEntry<'_>) -> Option<BuildId> {
    if entry.inode == 0 {
        return None;
    }
    let process = Task::of(pid);
    // The mapping itself takes privileges that plain users lack.
    let mapped = foreign::open(&process.mapped_file(&entry.addresses));
    let seen = || foreign::open(&process.below_root(Path::new(&*entry.path)));
    build_id_of(mapped.or_else(|_| seen()).ok()?)
}

/// The build id of an ELF file, from its segments of notes: the kernel's records have it from
/// there, too (lib/buildid.c).
pub(crate) fn build_id_of(file: File) -> Option<BuildId> {
    let cache = ReadCache::new(file);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf64 => segment_build_id::<elf::FileHeader64<Endianness>>(&cache),
        FileKind::Elf32 => segment_build_id::<elf::FileHeader32<Endianness>>(&cache),
        _ => None,
    }
}

fn segment_build_id<'a, Elf: FileHeader>(file: impl ReadRef<'a>) -> Option<BuildId> {
    let header = Elf::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    // Those of real files take some bytes.
    const NOTES: u64 = 64 << 10;
    let small = segments
        .iter()
        .filter(|one| Into::<u64>::into(one.p_filesz(endian)) <= NOTES);
    let mut notes = small.filter_map(|one| one.notes(endian, file).ok()?);
    notes.find_map(|notes| build_id_among(notes, endian))
}

/// The mappings of the kernel's code and of its modules, as perf names them, if their addresses are
/// shown to us (kptr_restrict).
pub(crate) fn kernel(each: &mut dyn FnMut(&Record<'_>)) {
    if let Some(addresses) = kernel::text() {
        let path = OsStr::new("[kernel.kallsyms]_text");
        let offset = addresses.start;
        each(&Record::Mmap(Mmap {
            file_offset: offset,
            build_id: kernel_build_id(),
            ..kernel_code(addresses, path)
        }));
    }
}

/// The code of loaded kernel modules.
pub(crate) fn kernel_modules(each: &mut dyn FnMut(&Record<'_>)) {
    for module in kernel::modules() {
        let addresses = module.address..module.address.saturating_add(module.size);
        // In brackets, as in kallsyms.
        let name = format!("[{}]", module.name);
        each(&Record::Mmap(kernel_code(addresses, OsStr::new(&name))));
    }
}

fn kernel_code(addresses: Range<u64>, path: &OsStr) -> Mmap<'_> {
    const EXECUTE: u32 = 4;
    Mmap {
        stamp: Stamp::default(),
        mode: CpuMode::Kernel,
        pid: -1,
        tid: 0,
        address: addresses.start,
        length: addresses.end - addresses.start,
        file_offset: 0,
        executable: true,
        protection: Some(EXECUTE),
        flags: None,
        build_id: None,
        identity: None,
        path,
    }
}

/// The running kernel's build id, from the notes that it shows.
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    note_build_id(&fs::read("/sys/kernel/notes").ok()?)
}

/// The build id among ELF notes of this machine's byte order.
pub(crate) fn note_build_id(notes: &[u8]) -> Option<BuildId> {
    let endian = Endianness::default();
    let notes = NoteIterator::<elf::FileHeader64<Endianness>>::new(endian, 4, notes).ok()?;
    build_id_among(notes, endian)
}

/// The description of the `NT_GNU_BUILD_ID` note.
fn build_id_among<Elf: FileHeader>(
    notes: NoteIterator<'_, Elf>,
    endian: Elf::Endian,
) -> Option<BuildId> {
    let mut notes = notes.map_while(Result::ok);
    let found = notes.find(|note| {
        note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID
    })?;
    BuildId::new(found.desc())
}

#[cfg(test)]
mod tests {
    use super::*;

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
