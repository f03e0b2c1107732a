//! Code of files that runs from anonymous memory.
//!
//! Programs copy their code to huge pages, over its own mapping (`node --use-largepages=on`, iodlr,
//! BOLT's hugify): the mapping has no file then. It lies where the file's other mappings say that a
//! segment of code was, and has the file's bytes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef, elf};
use prof_model::{
    AbsoluteAddress, BuildId, FileIdentity, Mapping, Module, ModuleKind, Modules, Pid, Process,
};
use prof_perfdata::{Mmap, Sample};
use prof_procfs::{MapsEntry, Task};
use prof_runtimes::{Memory, SyntheticCode};
use prof_unwinder::Target;

use crate::live::interpreted::Now;
use crate::output::mapped_file::open_mapped;
use crate::output::synthesize::{build_id_of, code_of};
use crate::session::interpreted;

/// Pages are a multiple of this large.
const PAGE: u64 = 4096;

/// Looks at anonymous code of processes, once at each mapping.
#[derive(Debug, Default)]
pub(crate) struct MovedCode {
    seen: HashMap<Pid, Seen>,
}

/// The anonymous code that was looked at in a process.
#[derive(Debug, Default)]
struct Seen {
    generation: u64,
    starts: HashSet<u64>,
}

/// A file's code in anonymous memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MovedSegment {
    addresses: Range<u64>,
    file_offset: u64,
    module: Module,
}

impl MovedCode {
    /// A process that makes code at run time may have many mappings of it; code moves early.
    const MOST: usize = 64;

    /// The code that has moved to where these addresses of a sample are, if that is not known.
    pub(crate) fn find(
        &mut self,
        target: &Target<'_>,
        addresses: impl IntoIterator<Item = u64>,
    ) -> Option<MovedSegment> {
        let mut addresses = addresses.into_iter();
        addresses.find_map(|address| {
            let mapping = target.process.space().find(AbsoluteAddress(address))?;
            let is_anonymous = target.modules[mapping.module].kind == ModuleKind::Anonymous;
            let is_new = is_anonymous
                && !SyntheticCode::contains(address)
                && self.is_new(target.pid, target.process, mapping);
            is_new.then(|| find(target, address))?
        })
    }

    fn is_new(&mut self, pid: Pid, process: &Process, mapping: &Mapping) -> bool {
        let seen = self.seen.entry(pid).or_default();
        if seen.generation != process.generation() {
            *seen = Seen {
                generation: process.generation(),
                ..Seen::default()
            };
        }
        seen.starts.len() < Self::MOST && seen.starts.insert(mapping.start.0)
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.seen.remove(&pid);
    }
}

impl MovedSegment {
    /// The record that maps it, as if it came right before a sample.
    pub(crate) fn record(&self, sample: &Sample<'_>) -> Mmap<'_> {
        Mmap {
            stamp: interpreted::stamp(sample),
            tid: sample.tid,
            ..code_of(sample.pid, &self.module, &self.addresses, self.file_offset)
        }
    }
}

/// The code at `address`, if it has moved there from a file that is mapped beside it.
fn find(target: &Target<'_>, address: u64) -> Option<MovedSegment> {
    let maps = Task::of(target.pid).maps().ok()?;
    let entries: Vec<_> = maps.iter().collect();
    let at = (entries.iter()).position(|entry| entry.addresses.contains(&address))?;
    let (below, above) = entries.split_at(at);
    let anonymous = above.first().filter(|entry| !is_file(entry))?;
    let nearest = [
        below.iter().rev().find(|entry| is_file(entry)),
        above.iter().find(|entry| is_file(entry)),
    ];
    let mut nearest = nearest.into_iter().flatten();
    nearest.find_map(|beside| moved_from(target, beside, &anonymous.addresses, address))
}

fn is_file(entry: &MapsEntry<'_>) -> bool {
    entry.inode != 0 && Module::from_path(&*entry.path).kind == ModuleKind::File
}

/// The same for the file that is mapped `beside` it.
fn moved_from(
    target: &Target<'_>,
    beside: &MapsEntry<'_>,
    anonymous: &Range<u64>,
    address: u64,
) -> Option<MovedSegment> {
    let identity = FileIdentity {
        device: beside.device,
        inode: beside.inode,
        generation: 0,
    };
    let module = Module {
        identity: Some(identity),
        ..Module::from_path(&*beside.path)
    };
    let file = open_mapped(target.pid, &module, &beside.addresses).ok()?;
    let loads = loads(&file)?;
    let in_file = (beside.addresses.start, beside.file_offset);
    let place = (loads.iter())
        .flat_map(|load| load.bias(in_file))
        .find_map(|bias| Some((bias, loads.iter().find(|it| it.runs_at(bias, address))?)));
    let (bias, load) = place?;
    let code = load.addresses(bias);
    let page = address / PAGE * PAGE;
    let compared = code.start.max(page)..code.end.min(page + PAGE);
    let mut memory = Now::of_target(target)?;
    has_bytes_of(
        &mut memory,
        &file,
        compared.clone(),
        load.offset_of(bias, compared.start),
    )
    .then_some(())?;
    let start = anonymous.start.max(code.start / PAGE * PAGE);
    let end = code.end.checked_next_multiple_of(PAGE)?;
    Some(MovedSegment {
        addresses: start..anonymous.end.min(end),
        file_offset: load.offset_of(bias, start),
        module: as_known(target.modules, module, build_id_of(file)),
    })
}

/// Whether the bytes at these addresses are those of the file from `offset` on.
fn has_bytes_of(memory: &mut Now, file: &File, addresses: Range<u64>, offset: u64) -> bool {
    let (mut in_memory, mut in_file) = ([0; PAGE as usize], [0; PAGE as usize]);
    let length = addresses.end.saturating_sub(addresses.start) as usize;
    let (Some(in_memory), Some(in_file)) = (in_memory.get_mut(..length), in_file.get_mut(..length))
    else {
        return false;
    };
    memory.read(addresses.start, in_memory) == length
        && file.read_exact_at(in_file, offset).is_ok()
        && in_memory == in_file
}

/// The module as a record of the kernel has it, if there was one.
fn as_known(modules: &Modules, module: Module, build_id: Option<BuildId>) -> Module {
    let module = Module {
        build_id,
        identity: module.identity.filter(|_| build_id.is_none()),
        ..module
    };
    let is_it = |known: &&Module| {
        let may_be = match (known.identity, module.identity) {
            (Some(known), Some(identity)) => known.may_be(&identity),
            (known, identity) => known == identity,
        };
        known.path == module.path && known.build_id == module.build_id && may_be
    };
    let known = modules.iter().map(|(_, known)| known).find(is_it);
    known.cloned().unwrap_or(module)
}

/// A loadable segment of a file.
#[derive(Clone, Copy, Debug)]
struct Load {
    offset: u64,
    size: u64,
    address: u64,
    is_code: bool,
}

impl Load {
    /// What was added to the file's addresses, if its bytes from an offset on are mapped at
    /// `start`, and are of this segment.
    fn bias(&self, (start, offset): (u64, u64)) -> Option<u64> {
        let first = self.offset / PAGE * PAGE;
        let is_in = offset >= first && offset < self.offset.saturating_add(self.size);
        let into = offset.wrapping_sub(self.offset);
        is_in.then(|| start.wrapping_sub(self.address.wrapping_add(into)))
    }

    /// Where it is with this bias.
    fn addresses(&self, bias: u64) -> Range<u64> {
        let start = bias.wrapping_add(self.address);
        start..start.saturating_add(self.size)
    }

    fn runs_at(&self, bias: u64, address: u64) -> bool {
        self.is_code && self.addresses(bias).contains(&address)
    }

    /// The position in the file of what is at this address.
    fn offset_of(&self, bias: u64, address: u64) -> u64 {
        let into = address.wrapping_sub(bias).wrapping_sub(self.address);
        self.offset.wrapping_add(into)
    }
}

fn loads(file: &File) -> Option<Vec<Load>> {
    /// Programs have a dozen.
    const MOST: usize = 1024;
    let cache = ReadCache::new(file);
    let header = elf::FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let count = usize::from(header.e_phnum(endian));
    if count > MOST {
        return None;
    }
    let table: &[elf::ProgramHeader64<Endianness>] =
        (&cache).read_slice_at(header.e_phoff(endian), count).ok()?;
    let loads = table
        .iter()
        .filter(|it| it.p_type(endian) == elf::PT_LOAD)
        .map(|it| Load {
            offset: it.p_offset(endian),
            size: it.p_filesz(endian),
            address: it.p_vaddr(endian),
            is_code: it.p_flags(endian).contains(elf::PF_X),
        });
    Some(loads.collect())
}
