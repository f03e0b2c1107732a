//! Files whose symbols are needed when the recording is over, held open before they go away: files
//! that cannot be found later, and the root directories of containers.
//!
//! The files of a process in another mount namespace go away when it ends; a deleted file or a
//! memfd goes with its last mapping. Open descriptors keep them as long as we run.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use prof_filemap::Rights;
use prof_model::{Mapping, Module, ModuleKind, Modules, Pid};
use prof_procfs::{Namespace, Task, identity};

use crate::output::mapped_file::open_mapped;

/// Files and directories that cannot be found by their paths.
#[derive(Debug, Default)]
pub struct PinnedFiles {
    /// Files with samples.
    pub files: Vec<(Module, File)>,
    /// Root directories that are not ours.
    pub roots: Vec<PinnedRoot>,
    /// Processes with these root directories.
    pub processes: Vec<PinnedProcess>,
    /// Perf maps of processes, with what was read from their memory.
    pub perf_maps: HashMap<Pid, String>,
}

/// A root directory of processes in another mount namespace, or of a `chroot`.
#[derive(Debug)]
pub struct PinnedRoot {
    /// The directory.
    pub directory: File,
    /// Keeps the mounts below it as long as this is open.
    #[expect(dead_code, reason = "held, never read")]
    namespace: File,
}

/// A process with a root directory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedProcess {
    /// Its id in our PID namespace.
    pub pid: Pid,
    /// Its id in its own.
    pub inner_pid: Pid,
    /// The rights of its user.
    pub rights: Rights,
    /// Its root directory, as an index of [`PinnedFiles::roots`].
    pub root: usize,
}

impl PinnedFiles {
    /// Whether everything can be found by its path.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.processes.is_empty() && self.perf_maps.is_empty()
    }
}

/// Pins files that may go away.
#[derive(Debug, Default)]
pub(crate) struct FilePinner {
    /// By module index.
    files: Vec<Slot>,
    open: usize,
    own: Option<Root>,
    /// The sampled processes, each with the program that it ran then.
    met: HashMap<Pid, u64>,
    roots: Vec<(Root, PinnedRoot)>,
    processes: HashMap<Pid, PinnedProcess>,
}

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Untried,
    Open(File),
    Failed {
        attempts: u8,
        pid: Pid,
    },
}

/// The identity of a root directory: the mount namespace and the directory, by device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Root {
    namespace: (u64, u64),
    directory: (u64, u64),
}

impl FilePinner {
    /// Descriptors are scarce; files beyond this number are not pinned.
    const MOST: usize = 512;
    /// Another process may still have a file that was mapped by one that has ended.
    const ATTEMPTS: u8 = 3;

    /// A process that runs its `program`-th program has a sample.
    pub(crate) fn meet(&mut self, pid: Pid, program: u64) {
        if self.met.insert(pid, program) == Some(program) {
            return;
        }
        let own = *self.own.get_or_insert_with(|| {
            Root::of(&Task::this_process()).unwrap_or(Root {
                namespace: (0, 0),
                directory: (0, 0),
            })
        });
        let Some(root) = Root::of(&Task::of(pid)).filter(|root| *root != own) else {
            return;
        };
        if let Some(process) = self.process(pid, root) {
            self.processes.insert(pid, process);
        }
    }

    /// A process has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.met.remove(&pid);
    }

    fn process(&mut self, pid: Pid, root: Root) -> Option<PinnedProcess> {
        let known = self.roots.iter().position(|(known, _)| *known == root);
        let index = match known {
            Some(index) => index,
            None if self.roots.len() >= Self::MOST => return None,
            None => {
                self.roots.push((root, PinnedRoot::open(pid)?));
                self.roots.len() - 1
            }
        };
        let status = Task::of(pid).status().ok()?;
        Some(PinnedProcess {
            pid,
            inner_pid: status.inner_pid().unwrap_or(pid),
            rights: Rights::of_status(&status)?,
            root: index,
        })
    }

    /// A sample of process `pid` has a frame in `mapping`.
    pub(crate) fn hit(&mut self, pid: Pid, mapping: &Mapping, modules: &Modules) {
        let index = mapping.module.index();
        if self.files.len() <= index {
            self.files.resize_with(index + 1, Slot::default);
        }
        let Some(slot) = self.files.get_mut(index) else {
            return;
        };
        let attempts = match slot {
            Slot::Untried => 1,
            Slot::Failed {
                attempts,
                pid: tried,
            } if *attempts < Self::ATTEMPTS && *tried != pid => *attempts + 1,
            _ => return,
        };
        let module = &modules[mapping.module];
        let wanted = module.kind == ModuleKind::File && self.open < Self::MOST;
        let opened = wanted.then(|| open_mapped(pid, module, &mapping.addresses()).ok());
        *slot = match opened.flatten() {
            Some(file) => {
                self.open += 1;
                Slot::Open(file)
            }
            None => Slot::Failed { attempts, pid },
        };
    }

    /// The pinned files that would otherwise be lost.
    pub(crate) fn finish(self, modules: &Modules) -> PinnedFiles {
        let files = modules
            .iter()
            .zip(self.files)
            .filter_map(|((_, module), slot)| match slot {
                Slot::Open(file) => Some((module.clone(), file)),
                _ => None,
            });
        PinnedFiles {
            files: files
                .filter(|(module, file)| !is_at(file, &module.path))
                .collect(),
            roots: self.roots.into_iter().map(|(_, root)| root).collect(),
            processes: self.processes.into_values().collect(),
            perf_maps: HashMap::new(),
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let there = fs::metadata(path).ok().map(identity);
    there.is_some() && there == file.metadata().ok().map(identity)
}

impl Root {
    fn of(process: &Task) -> Option<Self> {
        Some(Self {
            namespace: identity(&process.namespace(Namespace::Mount))?,
            directory: identity(&process.root())?,
        })
    }
}

impl PinnedRoot {
    fn open(pid: Pid) -> Option<Self> {
        let process = Task::of(pid);
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(process.root());
        Some(Self {
            directory: directory.ok()?,
            namespace: File::open(process.namespace(Namespace::Mount)).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{AbsoluteAddress, FileOffset};

    use super::*;

    #[test]
    fn a_deleted_file_is_kept_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = std::process::id() as Pid;
        let mut modules = Modules::default();
        let mut file_pinner = FilePinner::default();
        for name in ["stays", "goes"] {
            let path = folder.path().join(name);
            fs::write(&path, name).expect("written");
            let mapping = Mapping {
                start: AbsoluteAddress(0),
                end: AbsoluteAddress(1),
                file_offset: FileOffset(0),
                module: modules.intern(Module::from_path(path)),
                executable: true,
            };
            file_pinner.hit(pid, &mapping, &modules);
            file_pinner.hit(pid, &mapping, &modules);
        }
        file_pinner.meet(pid, 1);
        fs::remove_file(folder.path().join("goes")).expect("removed");
        let kept = file_pinner.finish(&modules);
        let names: Vec<_> = kept
            .files
            .iter()
            .map(|(module, _)| module.short_name())
            .collect();
        assert_eq!(names, ["goes"]);
        assert_eq!(kept.processes, [], "we share our root with ourselves");
    }
}
