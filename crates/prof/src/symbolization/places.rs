//! Where files of processes can be opened if not by their paths.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prof_filemap::Rights;
use prof_model::{Module, Pid};
use prof_procfs::{Maps, Namespace, Task, descriptor, identity, without_deleted};
use prof_recorder::{PinnedFiles, PinnedProcess};
use prof_report::Profile;
use prof_symbols::{Host, Places, Source};

/// The files of living processes, from `/proc`.
#[derive(Debug, Default)]
pub(super) struct ProcessFiles {
    /// Root directories that are not ours, one for each mount namespace.
    roots: Vec<PathBuf>,
    /// Paths of deleted files, and paths by which they can still be opened.
    deleted: HashMap<PathBuf, Vec<PathBuf>>,
    /// The jitdumps that processes mapped, living or not.
    jitdumps: Vec<(Pid, PathBuf)>,
}

impl ProcessFiles {
    /// The files of sampled processes that still live. (Or of others that have their PIDs now:
    /// files found this way are checked.)
    pub(super) fn of(profile: &Profile) -> Self {
        // After another boot, or on another machine, other processes have the PIDs.
        let is_of_now = !profile.header.host().differs(&Host::this());
        let samples = profile.samples.iter().filter(|_| is_of_now);
        let pids: BTreeSet<Pid> = samples.map(|sample| sample.pid).collect();
        let own = namespace(&Task::this_process());
        let mut seen = BTreeSet::from([own]);
        let modules = profile.modules.iter();
        let mut living = Self {
            jitdumps: modules
                .filter_map(|(_, module)| Some((writer(&module.path)?, module.path.clone())))
                .collect(),
            ..Self::default()
        };
        for pid in pids.into_iter().filter(|&pid| pid > 0) {
            let process = Task::of(pid);
            let Ok(maps) = process.maps() else {
                continue;
            };
            living.add_deleted(&process, &maps);
            let root = process.root();
            let chroot = fs::read_link(&root).is_ok_and(|root| root != Path::new("/"));
            if seen.insert(namespace(&process)) || chroot {
                living.roots.push(root);
            }
        }
        living
    }

    fn add_deleted(&mut self, process: &Task, maps: &Maps) {
        for entry in maps.iter().filter(|entry| entry.permissions.executable()) {
            let path = Path::new(&*entry.path);
            let without = without_deleted(path);
            if without == path {
                continue;
            }
            let places = self.deleted.entry(without.to_owned()).or_default();
            // The program itself can be opened without privileges, other mappings cannot.
            places.push(process.mapped_file(&entry.addresses));
            places.push(process.exe());
        }
    }

    /// The directories that may have their debug files.
    pub(super) fn debug_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.roots.iter().map(|root| root.join(DEBUG_DIRECTORY))
    }
}

const DEBUG_DIRECTORY: &str = "usr/lib/debug";

impl Places for ProcessFiles {
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let path = without_deleted(&module.path);
        let inside = self.roots.iter().map(|root| below(root, path));
        let deleted = self.deleted.get(path).into_iter().flatten().cloned();
        inside
            .chain(deleted)
            .filter(|place| is_plausible(place, module))
            .collect()
    }

    fn jitdumps(&self, pid: Pid) -> Vec<PathBuf> {
        let all = self.jitdumps.iter();
        all.filter(|(writer, _)| *writer == pid)
            .map(|(_, path)| path.clone())
            .collect()
    }
}

/// Files that the recorder kept open, in its own process.
#[derive(Debug)]
pub(super) struct PinnedPlaces(pub(super) Arc<PinnedFiles>);

impl PinnedPlaces {
    fn root(&self, index: usize) -> Option<PathBuf> {
        Some(descriptor(&self.0.roots.get(index)?.directory))
    }

    fn process(&self, pid: Pid) -> Option<&PinnedProcess> {
        self.0.processes.iter().find(|process| process.pid == pid)
    }

    /// The directories that may have debug files.
    pub(super) fn debug_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.0.roots.iter();
        roots.map(|root| descriptor(&root.directory).join(DEBUG_DIRECTORY))
    }

    /// Whether these symbols can be found only now.
    pub(super) fn has(&self, source: Source<'_>) -> bool {
        match source {
            Source::File(module) => self.0.files.iter().any(|(kept, _)| is_same(kept, module)),
            Source::Jit { pid } => {
                self.process(pid).is_some() || self.0.perf_maps.contains_key(&pid)
            }
            Source::Kernel => false,
        }
    }
}

impl Places for PinnedPlaces {
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let mut files = self.0.files.iter();
        let Some((_, file)) = files.find(|(pinned, _)| is_same(pinned, module)) else {
            return Vec::new();
        };
        let file = descriptor(file);
        // By its path if possible, because other files are searched beside it.
        let path = without_deleted(&module.path);
        let inside =
            (0..self.0.roots.len()).filter_map(|index| Some(below(&self.root(index)?, path)));
        let same =
            |place: &PathBuf| identity(place).is_some() && identity(place) == identity(&file);
        let mut places: Vec<PathBuf> = inside.filter(same).collect();
        places.push(file);
        places
    }

    fn rights(&self, pid: Pid) -> Option<Rights> {
        Some(self.process(pid)?.rights.clone())
    }

    fn root(&self, pid: Pid) -> Option<(PathBuf, Pid)> {
        let process = self.process(pid)?;
        Some((self.root(process.root)?, process.inner_pid))
    }

    fn perf_map(&self, pid: Pid) -> Option<Cow<'_, str>> {
        let map = self.0.perf_maps.get(&pid)?;
        Some(Cow::Borrowed(map))
    }
}

/// The process that wrote a jitdump, from the name `jit-PID.dump`.
fn writer(path: &Path) -> Option<Pid> {
    let name = path.file_name()?.to_str()?;
    let pid = name.strip_prefix("jit-")?.strip_suffix(".dump")?;
    pid.parse().ok()
}

/// Whether a module of the recording is this one of the recorder, which may lack a build id.
/// Without one, only the inode tells several files of one path apart.
fn is_same(pinned: &Module, module: &Module) -> bool {
    let is_other_file = match (pinned.identity, module.identity) {
        (Some(pinned), Some(module)) => !pinned.may_be(&module),
        _ => false,
    };
    pinned.path == module.path
        && !is_other_file
        && (pinned.build_id.is_none() || pinned.build_id == module.build_id)
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Without a build id to compare, only the same inode is accepted.
fn is_plausible(place: &Path, module: &Module) -> bool {
    let inode = module.identity.map(|identity| identity.inode);
    module.build_id.is_some()
        || (inode.is_some() && identity(place).map(|(_, inode)| inode) == inode)
}

fn namespace(process: &Task) -> Option<(u64, u64)> {
    identity(&process.namespace(Namespace::Mount))
}
