//! Which programs the probes reach.
//!
//! A probe belongs to a file. A program that maps another file instead, or contains the function
//! itself (a static program), is not reached, whatever it calls.
//!
//! ```text
//!   COMM (exec)   MMAP2 tool                                     EXIT
//!        ├────────────┴──────────────────────────────────────────┤   not reached: no probed file
//!        ├────────────┬───────────┬──────────────────────────────┤   reached
//!                 MMAP2 sh   MMAP2 libc.so.6
//! ```
//!
//! Only proven cases count: programs without a known mapping (those that gained privileges, kernel
//! threads) do not, and none do if records were lost.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prof_events::{Opened, Weight, system};
use prof_model::{BuildId, Pid, ProbedPrograms, Processes, UnreachedProgram};
use prof_perfdata::{CpuMode, Mmap, Record};

use crate::output::synthesize;

/// Follows which programs map the probed files.
#[derive(Debug, Default)]
pub(crate) struct ProbeCoverage {
    /// Empty if nothing is probed: then nothing is followed.
    files: Vec<ProbedFile>,
    /// Whether probes are the only events.
    only: bool,
    /// Whether every program is expected to use a probed file.
    is_used_by_all: bool,
    /// The running programs.
    images: HashMap<Pid, Image>,
    unreached: HashMap<Box<str>, UnreachedProgram>,
    reached: bool,
    /// Whether records were lost, so that mappings may be unknown.
    is_uncertain: bool,
    begin: u64,
    last: u64,
}

/// A program that a process runs.
#[derive(Clone, Debug, Default)]
struct Image {
    program: Box<str>,
    since: u64,
    /// Whether a mapping is known.
    maps_something: bool,
    is_reached: bool,
    /// A mapped file with the name of a probed file.
    instead: Option<Box<str>>,
}

impl ProbeCoverage {
    /// The most names of programs that are kept: more than a recording can hold.
    const MOST: usize = 1000;

    pub(crate) fn new(opened: &Opened) -> Self {
        let setups = opened.events.iter().map(|event| &event.setup);
        let sampling = setups.filter(|setup| !setup.only_tracks());
        let (probes, others): (Vec<_>, Vec<_>) =
            sampling.partition(|setup| setup.spec.family.is_uprobe());
        let mut files: Vec<ProbedFile> = Vec::new();
        for path in probes
            .iter()
            .filter_map(|it| it.spec.encoding.path.as_ref())
        {
            let path = Path::new(OsStr::from_bytes(path.to_bytes()));
            let file = ProbedFile::read(path);
            if files.iter().all(|known| known.path != file.path) {
                files.push(file);
            }
        }
        let allocates = |weight| matches!(weight, Weight::Allocation { .. });
        let is_used_by_all = files.iter().any(ProbedFile::is_c_library)
            || probes.iter().any(|probe| allocates(probe.weight));
        Self {
            only: others.is_empty(),
            is_used_by_all,
            files,
            begin: system::monotonic_now(),
            ..Self::default()
        }
    }

    /// Follows a record, after `processes` has.
    pub(crate) fn follow(&mut self, record: &Record<'_>, processes: &Processes) {
        if self.files.is_empty() {
            return;
        }
        let time = record.stamp().time;
        self.last = self.last.max(time.unwrap_or(0));
        let now = time.unwrap_or(self.begin);
        match record {
            Record::Comm(comm) if comm.exec => {
                self.end(comm.pid, now);
                self.run(comm.pid, &comm.name.to_string_lossy(), now);
            }
            // It ran before. Of any other new process, only a part of the mappings is known.
            Record::Comm(comm) if time.is_none() && !self.images.contains_key(&comm.pid) => {
                self.run(comm.pid, &comm.name.to_string_lossy(), now);
            }
            Record::Fork(task) if task.pid != task.parent_pid => {
                let image = self.images.get(&task.parent_pid).cloned();
                let image = image.map(|image| Image {
                    since: now,
                    ..image
                });
                match image {
                    Some(image) => self.images.insert(task.pid, image),
                    None => self.images.remove(&task.pid),
                };
            }
            Record::Mmap(mmap) => self.map(mmap),
            Record::Exit(task) if processes.get(task.pid).is_none() => self.end(task.pid, now),
            Record::Lost(_) => self.is_uncertain = true,
            _ => {}
        }
    }

    fn run(&mut self, pid: Pid, program: &str, since: u64) {
        let program = program.into();
        let image = Image {
            program,
            since,
            ..Image::default()
        };
        self.images.insert(pid, image);
    }

    fn map(&mut self, mmap: &Mmap<'_>) {
        let Some(image) = self.images.get_mut(&mmap.pid) else {
            return;
        };
        if mmap.mode != CpuMode::User {
            return;
        }
        image.maps_something = true;
        if self.files.iter().any(|file| file.is_mapped_by(mmap)) {
            image.is_reached = true;
            self.reached = true;
        } else if image.instead.is_none() && self.files.iter().any(|file| file.is_like(mmap)) {
            image.instead = Some(mmap.path.to_string_lossy().into());
        }
    }

    /// A process ends its program.
    fn end(&mut self, pid: Pid, now: u64) {
        let Some(image) = self.images.remove(&pid) else {
            return;
        };
        let is_expected = self.is_used_by_all || image.instead.is_some();
        if image.is_reached || !image.maps_something || !is_expected {
            return;
        }
        let run = UnreachedProgram {
            program: image.program,
            processes: 1,
            ran: now.saturating_sub(image.since),
            instead: image.instead,
        };
        if let Some(known) = self.unreached.get_mut(&run.program) {
            known.add(&run);
        } else if self.unreached.len() < Self::MOST {
            self.unreached.insert(run.program.clone(), run);
        }
    }

    /// The result up to the end of sampling; `None` if nothing was probed.
    pub(crate) fn finish(&mut self, ended: Option<u64>) -> Option<ProbedPrograms> {
        if self.files.is_empty() {
            return None;
        }
        let end = ended.unwrap_or(0).max(self.last);
        let running: Vec<Pid> = self.images.keys().copied().collect();
        running.into_iter().for_each(|pid| self.end(pid, end));
        let unreached = match self.is_uncertain {
            true => Vec::new(),
            false => std::mem::take(&mut self.unreached).into_values().collect(),
        };
        let mut programs = ProbedPrograms {
            files: self.files.iter().map(|file| file.name.clone()).collect(),
            only: self.only,
            reached: self.reached || self.is_uncertain,
            recorded: end.saturating_sub(self.begin),
            unreached,
        };
        programs.files.dedup();
        programs.sort();
        Some(programs)
    }
}

/// A file that has probes.
#[derive(Debug)]
struct ProbedFile {
    path: PathBuf,
    /// Without folders.
    name: Box<str>,
    inode: Option<u64>,
    build_id: Option<BuildId>,
}

impl ProbedFile {
    fn read(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            name: name.to_string_lossy().into(),
            inode: path.metadata().ok().map(|file| file.ino()),
            build_id: File::open(path).ok().and_then(synthesize::build_id_of),
            // The kernel's records have no links in paths.
            path: path.canonicalize().unwrap_or_else(|_| path.into()),
        }
    }

    fn is_c_library(&self) -> bool {
        self.name.starts_with("libc.so") || self.name.starts_with("libc-")
    }

    /// Whether it may be this file. Devices prove nothing: those of layered file systems differ
    /// from the result of `stat`.
    fn is_mapped_by(&self, mmap: &Mmap<'_>) -> bool {
        if let (Some(own), Some(its)) = (self.build_id, mmap.build_id) {
            return own == its;
        }
        let inode = mmap.identity.map(|identity| identity.inode);
        self.path == mmap.path || (inode.is_some() && inode == self.inode)
    }

    /// Whether the mapped file has the same name.
    fn is_like(&self, mmap: &Mmap<'_>) -> bool {
        let names = [Some(OsStr::new(&*self.name)), self.path.file_name()];
        let path = mmap.path.as_bytes();
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let name = Path::new(OsStr::from_bytes(path)).file_name();
        name.is_some() && names.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{FileIdentity, Modules};
    use prof_perfdata::{Comm, Stamp, Task, follow};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn stamp(time: u64) -> Stamp {
        Stamp {
            time: (time > 0).then_some(time * SECOND),
            ..Stamp::default()
        }
    }

    fn comm(time: u64, pid: Pid, exec: bool, name: &str) -> Record<'_> {
        Record::Comm(Comm {
            stamp: stamp(time),
            pid,
            tid: pid,
            exec,
            name: OsStr::new(name),
        })
    }

    /// Maps a file with this build id, or with this inode if the id is 0.
    fn mmap(pid: Pid, path: &str, id: u8, inode: u64) -> Record<'_> {
        Record::Mmap(Mmap {
            stamp: stamp(1),
            mode: CpuMode::User,
            pid,
            tid: pid,
            address: 0x1000 + u64::from(id) * 0x1000,
            length: 0x1000,
            file_offset: 0,
            executable: true,
            protection: None,
            flags: None,
            build_id: BuildId::new(&[id; 20]),
            identity: (id == 0).then_some(FileIdentity {
                device: (1, 1),
                inode,
                generation: 0,
            }),
            path: OsStr::new(path),
        })
    }

    fn task(time: u64, parent: Pid, pid: Pid) -> Task {
        Task {
            stamp: stamp(time),
            pid,
            tid: pid,
            parent_pid: parent,
            parent_tid: parent,
            time: time * SECOND,
            existed: false,
        }
    }

    fn exit(time: u64, pid: Pid) -> Record<'static> {
        Record::Exit(task(time, 1, pid))
    }

    fn coverage(is_used_by_all: bool) -> ProbeCoverage {
        let libc = ProbedFile {
            path: "/usr/lib/libc.so.6".into(),
            name: "libc.so.6".into(),
            inode: Some(77),
            build_id: BuildId::new(&[7; 20]),
        };
        ProbeCoverage {
            files: vec![libc],
            only: true,
            is_used_by_all,
            begin: SECOND,
            ..ProbeCoverage::default()
        }
    }

    /// Follows records up to second 10, then lists programs, processes, seconds and the files used
    /// instead.
    fn check(mut coverage: ProbeCoverage, records: &[Record<'_>], expected: &[&str]) {
        let (mut processes, mut modules) = (Processes::default(), Modules::default());
        for record in records {
            follow(record, &mut processes, &mut modules);
            coverage.follow(record, &processes);
        }
        let programs = coverage.finish(Some(10 * SECOND)).expect("probes");
        let reported: Vec<_> = programs
            .unreached
            .iter()
            .map(|one| {
                let (program, seconds) = (&one.program, one.ran / SECOND);
                let instead = one.instead.as_deref().unwrap_or("nothing");
                format!("{program} {} {seconds} {instead}", one.processes)
            })
            .collect();
        assert_eq!(reported, expected);
        assert_eq!(programs.recorded, 9 * SECOND);
    }

    #[test]
    fn static_programs_are_not_reached() {
        let records = [
            comm(0, 1, false, "prof-exec"),
            comm(1, 1, true, "sh"),
            mmap(1, "/bin/sh", 1, 0),
            mmap(1, "/usr/lib/libc.so.6", 7, 0),
            // A static program, which runs for two seconds, and its child for one more.
            Record::Fork(task(2, 1, 2)),
            comm(2, 2, true, "tool"),
            mmap(2, "/bin/tool", 2, 0),
            Record::Fork(task(3, 2, 3)),
            exit(4, 2),
            exit(4, 3),
            // Another one, which becomes a dynamic program.
            Record::Fork(task(4, 1, 4)),
            comm(4, 4, true, "loader"),
            mmap(4, "/bin/loader", 3, 0),
            comm(7, 4, true, "sh"),
            mmap(4, "/usr/lib/libc.so.6", 7, 0),
            // A program that gained privileges has no mappings, and those of processes that were
            // not followed are unknown.
            Record::Fork(task(7, 1, 5)),
            comm(7, 5, true, "sudo"),
            exit(8, 5),
            comm(7, 6, false, "joined"),
            mmap(6, "/bin/joined", 4, 0),
        ];
        let expected = ["loader 1 3 nothing", "tool 2 3 nothing"];
        check(coverage(true), &records, &expected);
        // No function of any other library is expected in all programs.
        check(coverage(false), &records, &[]);
        let lost = Record::Lost(prof_perfdata::Lost {
            stamp: stamp(9),
            count: 1,
        });
        let records: Vec<_> = records.into_iter().chain([lost]).collect();
        check(coverage(true), &records, &[]);
    }

    #[test]
    fn other_files_of_the_name_are_reported() {
        let check = |path, id, inode, expected: &[&str]| {
            let records = [
                comm(0, 1, false, "web"),
                mmap(1, "/bin/web", 1, 0),
                mmap(1, path, id, inode),
            ];
            check(coverage(false), &records, expected);
        };
        let own = "/usr/lib/libc.so.6";
        check(own, 7, 0, &[]);
        // Without a known build id, path or inode may match.
        check(own, 0, 5, &[]);
        check("/lib/libc.so.6", 0, 77, &[]);
        check(own, 8, 0, &["web 1 9 /usr/lib/libc.so.6"]);
        let old = "/usr/lib/libc.so.6 (deleted)";
        check(old, 8, 0, &["web 1 9 /usr/lib/libc.so.6 (deleted)"]);
        check("/lib/libc.so.6", 0, 5, &["web 1 9 /lib/libc.so.6"]);
        check("/lib/libm.so.6", 8, 0, &[]);
    }

    #[test]
    fn a_file_is_known_by_its_own_records() {
        let own = std::env::current_exe().expect("a path");
        let file = ProbedFile::read(&own);
        let mut mapped = 0;
        let pid = std::process::id() as Pid;
        let mut ids = synthesize::BuildIds::default();
        synthesize::process(pid, &mut ids, &mut |record| {
            if let Record::Mmap(mmap) = record {
                assert_eq!(file.is_mapped_by(mmap), mmap.path == own);
                mapped += u32::from(mmap.path == own);
            }
        });
        assert!(mapped > 0);
    }
}
