//! The names, threads and mappings of the processes that were sampled.
//!
//! Pure bookkeeping: [`Processes`] is given what the kernel's COMM, FORK, MMAP and EXIT records
//! say, in time order, and answers which [`Mapping`] an address of a process lies in.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::address::{AbsoluteAddress, FileOffset};
use crate::module::ModuleId;

/// A process id, as the kernel's records give it (the recorder's PID namespace).
pub type Pid = i32;
/// A thread id.
pub type Tid = i32;

/// One mapping of a module into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: AbsoluteAddress,
    /// First address after the mapping.
    pub end: AbsoluteAddress,
    /// Where in the file the mapping starts.
    pub file_offset: FileOffset,
    /// The module that is mapped.
    pub module: ModuleId,
    /// Whether code can run here. Recordings need not hold the other mappings.
    pub executable: bool,
}

impl Mapping {
    /// The addresses that it covers.
    pub fn addresses(&self) -> Range<u64> {
        self.start.0..self.end.0
    }

    /// The position in the file of the byte that is mapped at `address`.
    pub fn file_offset_of(&self, address: AbsoluteAddress) -> FileOffset {
        FileOffset(
            address
                .0
                .wrapping_sub(self.start.0)
                .wrapping_add(self.file_offset.0),
        )
    }
}

/// The mappings of one process, without overlaps.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// By start address.
    mappings: BTreeMap<AbsoluteAddress, Mapping>,
}

impl AddressSpace {
    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// The mapping that holds `address`.
    pub fn find(&self, address: AbsoluteAddress) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// Adds a mapping and cuts the range it covers out of older ones, as `mmap` does.
    ///
    /// Empty and reversed ranges are ignored.
    pub fn insert(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        self.remove(new.start, new.end);
        self.mappings.insert(new.start, new);
    }

    /// Forgets whatever is mapped from `start` up to `end`.
    pub fn remove(&mut self, start: AbsoluteAddress, end: AbsoluteAddress) {
        let below = self
            .mappings
            .range(..start)
            .next_back()
            .map(|(&key, _)| key);
        let first = below.unwrap_or(start);
        let touched: Vec<Mapping> = self
            .mappings
            .range(first..end)
            .map(|(_, &mapping)| mapping)
            .filter(|mapping| mapping.end > start)
            .collect();
        for old in touched {
            self.mappings.remove(&old.start);
            if old.start < start {
                self.mappings
                    .insert(old.start, Mapping { end: start, ..old });
            }
            if old.end > end {
                let rest = Mapping {
                    start: end,
                    file_offset: old.file_offset_of(end),
                    ..old
                };
                self.mappings.insert(end, rest);
            }
        }
    }

    /// All mappings by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.values()
    }
}

/// A process: its address space and its threads.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Shared with forked children until either side maps something.
    space: Arc<AddressSpace>,
    /// The living threads, each with its name if that was recorded.
    threads: HashMap<Tid, Option<Arc<str>>>,
    has_called_exec: bool,
    latest_code: Option<ModuleId>,
    generation: u64,
    version: u64,
}

impl Process {
    /// The process's mappings.
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// Whether it has started over with `exec`, as far as the records say.
    pub fn has_called_exec(&self) -> bool {
        self.has_called_exec
    }

    /// The module of the code that it has mapped last, if any, by the records of itself.
    pub fn latest_code(&self) -> Option<ModuleId> {
        self.latest_code
    }

    /// Changes each time the process starts over with `exec`, and differs between processes:
    /// a key for whatever is cached per program run.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes each time that the process starts over with `exec` or maps something, and differs
    /// between processes: a key for whatever follows from its mappings.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The living threads, in no order.
    pub fn threads(&self) -> impl Iterator<Item = Tid> {
        self.threads.keys().copied()
    }

    /// The name that the thread itself was given, not that of its process.
    pub fn own_name(&self, tid: Tid) -> Option<&Arc<str>> {
        self.threads.get(&tid).and_then(Option::as_ref)
    }

    /// The name of a thread, or that of the main thread if the thread has none of its own.
    pub fn name(&self, pid: Pid, tid: Tid) -> Option<&Arc<str>> {
        let name_of = |tid| self.threads.get(&tid).and_then(Option::as_ref);
        name_of(tid).or_else(|| name_of(pid))
    }
}

/// Every process that lives at the point in time the records have reached.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Each copied when it changes while it is [`shared`](Self::shared).
    processes: HashMap<Pid, Arc<Process>>,
    generations: u64,
}

impl Processes {
    /// The process of this id, if a record has mentioned it.
    pub fn get(&self, pid: Pid) -> Option<&Process> {
        self.processes.get(&pid).map(Arc::as_ref)
    }

    /// The process of this id as it is now, unaffected by later changes.
    pub fn shared(&self, pid: Pid) -> Option<Arc<Process>> {
        self.processes.get(&pid).cloned()
    }

    /// All known processes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Pid, &Process)> {
        self.processes
            .iter()
            .map(|(&pid, process)| (pid, &**process))
    }

    /// How many processes are known.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Whether no process is known.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Handles a new mapping of a process (PERF_RECORD_MMAP, MMAP2).
    pub fn map(&mut self, pid: Pid, mapping: Mapping) {
        self.generations += 1;
        let version = self.generations;
        let process = self.entry(pid);
        if mapping.executable {
            process.latest_code = Some(mapping.module);
        }
        Arc::make_mut(&mut process.space).insert(mapping);
        process.version = version;
    }

    /// Handles a new name of a thread (PERF_RECORD_COMM).
    pub fn rename(&mut self, pid: Pid, tid: Tid, name: &str) {
        self.entry(pid).threads.insert(tid, Some(Arc::from(name)));
    }

    /// Handles an exec (PERF_RECORD_COMM with PERF_RECORD_MISC_COMM_EXEC): the process's mappings
    /// and other threads are gone.
    pub fn exec(&mut self, pid: Pid, name: &str) {
        self.processes.remove(&pid);
        self.rename(pid, pid, name);
        self.entry(pid).has_called_exec = true;
    }

    /// Handles a new process or thread (PERF_RECORD_FORK). A thread inherits its parent's name; a
    /// process also a copy of the address space.
    pub fn fork(&mut self, parent: (Pid, Tid), child: (Pid, Tid)) {
        let name = self
            .get(parent.0)
            .and_then(|process| process.name(parent.0, parent.1))
            .cloned();
        if parent.0 != child.0 {
            let space = self
                .get(parent.0)
                .map(|process| Arc::clone(&process.space))
                .unwrap_or_default();
            self.processes.remove(&child.0);
            self.entry(child.0).space = space;
        }
        self.entry(child.0).threads.insert(child.1, name);
    }

    /// Handles the end of a thread (PERF_RECORD_EXIT); with its last thread the process is removed.
    pub fn exit(&mut self, pid: Pid, tid: Tid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let process = Arc::make_mut(process);
        process.threads.remove(&tid);
        if process.threads.is_empty() {
            self.processes.remove(&pid);
        }
    }

    fn entry(&mut self, pid: Pid) -> &mut Process {
        let generations = &mut self.generations;
        let process = self.processes.entry(pid).or_insert_with(|| {
            *generations += 1;
            Arc::new(Process {
                generation: *generations,
                version: *generations,
                ..Process::default()
            })
        });
        Arc::make_mut(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{Module, Modules};

    fn mapping(start: u64, end: u64, file_offset: u64) -> Mapping {
        let module = Modules::default().intern(Module::from_path("/bin/x"));
        let (start, end) = (AbsoluteAddress(start), AbsoluteAddress(end));
        Mapping {
            start,
            end,
            file_offset: FileOffset(file_offset),
            module,
            executable: true,
        }
    }

    /// Maps `ranges` one after the other, then lists what is left as (start, end, file offset).
    fn check_space(ranges: &[(u64, u64, u64)], expected: &[(u64, u64, u64)]) {
        let mut space = AddressSpace::default();
        for &(start, end, offset) in ranges {
            space.insert(mapping(start, end, offset));
        }
        let left: Vec<_> = space
            .iter()
            .map(|m| (m.start.0, m.end.0, m.file_offset.0))
            .collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_new_mapping_replaces_covered_ones() {
        check_space(&[(10, 20, 0), (10, 20, 5)], &[(10, 20, 5)]);
        check_space(
            &[(10, 40, 0), (20, 30, 100)],
            &[(10, 20, 0), (20, 30, 100), (30, 40, 20)],
        );
        check_space(
            &[(10, 20, 0), (20, 30, 0), (15, 25, 7)],
            &[(10, 15, 0), (15, 25, 7), (25, 30, 5)],
        );
        check_space(&[(10, 20, 0), (5, 50, 1)], &[(5, 50, 1)]);
    }

    #[test]
    fn empty_and_reversed_mappings_are_ignored() {
        check_space(&[(10, 10, 0), (30, 20, 0)], &[]);
    }

    #[test]
    fn a_shared_process_stays_as_it_was() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "sh");
        processes.map(1, mapping(10, 20, 0));
        let shared = processes.shared(1).unwrap();
        processes.rename(1, 1, "ls");
        processes.map(1, mapping(15, 30, 0));
        let seen = |process: &Process| {
            let ends = process.space().iter().map(|mapping| mapping.end.0);
            (process.name(1, 1).unwrap().to_string(), ends.collect())
        };
        assert_eq!(seen(&shared), ("sh".into(), vec![20]));
        let now = processes.get(1).unwrap();
        assert_eq!(seen(now), ("ls".into(), vec![15, 30]));
        assert_ne!(shared.version(), now.version());
    }

    #[test]
    fn find_respects_both_ends() {
        let mut space = AddressSpace::default();
        space.insert(mapping(10, 20, 3));
        let found = |address| space.find(AbsoluteAddress(address)).is_some();
        assert_eq!([9, 10, 19, 20].map(found), [false, true, true, false]);
        let inside = AbsoluteAddress(12);
        assert_eq!(
            space.find(inside).map(|m| m.file_offset_of(inside)),
            Some(FileOffset(5))
        );
    }

    #[test]
    fn a_forked_child_keeps_its_copy_when_the_parent_maps_on() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "sh");
        processes.map(1, mapping(10, 20, 0));
        processes.fork((1, 1), (2, 2));
        processes.map(1, mapping(10, 20, 100));
        let offset = |pid| {
            processes
                .get(pid)
                .map(|p| p.space().iter().next().map(|m| m.file_offset.0))
        };
        assert_eq!((offset(1), offset(2)), (Some(Some(100)), Some(Some(0))));
        assert_eq!(
            processes.get(2).and_then(|p| p.name(2, 2)).map(|n| &**n),
            Some("sh")
        );
    }

    #[test]
    fn each_mapping_makes_another_version() {
        let mut processes = Processes::default();
        let mut seen = std::collections::HashSet::new();
        let mut check = |processes: &Processes, pids: &[Pid], changed: &[Pid]| {
            for pid in pids {
                let version = processes.get(*pid).map(Process::version);
                assert_eq!(seen.insert(version), changed.contains(pid), "{pid}");
            }
        };
        processes.rename(1, 1, "sh");
        check(&processes, &[1], &[1]);
        processes.map(1, mapping(10, 20, 0));
        check(&processes, &[1], &[1]);
        processes.fork((1, 1), (1, 5));
        check(&processes, &[1], &[]);
        processes.fork((1, 1), (2, 2));
        check(&processes, &[1, 2], &[2]);
        processes.map(2, mapping(10, 20, 0));
        check(&processes, &[1, 2], &[2]);
        processes.exec(1, "ls");
        check(&processes, &[1, 2], &[1]);
    }

    #[test]
    fn exec_starts_over_and_exit_forgets() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "sh");
        processes.map(1, mapping(10, 20, 0));
        let before = processes.get(1).map(Process::generation);
        processes.exec(1, "ls");
        assert_eq!(processes.get(1).map(|p| p.space().iter().count()), Some(0));
        assert_ne!(processes.get(1).map(Process::generation), before);
        processes.fork((1, 1), (1, 5));
        processes.exit(1, 1);
        assert!(processes.get(1).is_some(), "thread 5 lives on");
        processes.exit(1, 5);
        assert!(processes.is_empty());
    }
}
