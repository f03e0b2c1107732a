//! Where files of processes are that can't be found by their paths.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prof_filemap::Rights;
use prof_model::{Module, Pid};
use prof_recorder::{PinnedFiles, PinnedProcess};
use prof_report::Profile;
use prof_symbols::{Places, Source};

/// The files of processes that live, as `/proc` shows them.
#[derive(Debug, Default)]
pub(super) struct Living {
    /// Root directories that are not ours, one for each mount namespace.
    roots: Vec<PathBuf>,
    /// Paths of deleted files, and where they can be opened all the same.
    deleted: HashMap<PathBuf, Vec<PathBuf>>,
    /// The jitdumps that processes mapped, whether these live or not.
    jitdumps: Vec<(Pid, PathBuf)>,
}

impl Living {
    /// Of the processes that were sampled and still live. (Or others that have their PIDs now: what
    /// is found this way is checked.)
    pub(super) fn of(profile: &Profile) -> Self {
        let pids: BTreeSet<Pid> = profile.samples.iter().map(|sample| sample.pid).collect();
        let own = namespace("self");
        let mut seen = BTreeSet::from([own]);
        let modules = profile.modules.iter();
        let mut living = Self {
            jitdumps: modules
                .filter_map(|(_, module)| Some((writer(&module.path)?, module.path.clone())))
                .collect(),
            ..Self::default()
        };
        for pid in pids.into_iter().filter(|&pid| pid > 0) {
            let process = PathBuf::from(format!("/proc/{pid}"));
            let Ok(maps) = fs::read(process.join("maps")) else {
                continue;
            };
            living.add_deleted(&process, &maps);
            let chroot =
                fs::read_link(process.join("root")).is_ok_and(|root| root != Path::new("/"));
            if seen.insert(namespace(&pid.to_string())) || chroot {
                living.roots.push(process.join("root"));
            }
        }
        living
    }

    fn add_deleted(&mut self, process: &Path, maps: &[u8]) {
        for line in maps.split(|&byte| byte == b'\n') {
            // START-END PERMISSIONS OFFSET DEVICE INODE PATH
            let mut fields = line.splitn(6, |&byte| byte == b' ');
            let range = fields.next().unwrap_or_default();
            let executable = fields
                .next()
                .is_some_and(|flags| flags.get(2) == Some(&b'x'));
            let path = fields.nth(3).unwrap_or_default().trim_ascii_start();
            let Some(path) = path.strip_suffix(DELETED).filter(|_| executable) else {
                continue;
            };
            let range = String::from_utf8_lossy(range)
                .trim_start_matches('0')
                .to_owned();
            let places = self.deleted.entry(path_of(path).to_owned()).or_default();
            // The program itself can be had without privileges, other mappings cannot.
            places.push(process.join("map_files").join(range));
            places.push(process.join("exe"));
        }
    }

    /// Where their debug files may be.
    pub(super) fn debug_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.roots.iter().map(|root| root.join(DEBUG_DIRECTORY))
    }
}

const DEBUG_DIRECTORY: &str = "usr/lib/debug";

impl Places for Living {
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
pub(super) struct Kept(pub(super) Arc<PinnedFiles>);

impl Kept {
    fn root(&self, index: usize) -> Option<PathBuf> {
        Some(descriptor(&self.0.roots.get(index)?.directory))
    }

    fn process(&self, pid: Pid) -> Option<&PinnedProcess> {
        self.0.processes.iter().find(|process| process.pid == pid)
    }

    /// Where debug files may be.
    pub(super) fn debug_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.0.roots.iter();
        roots.map(|root| descriptor(&root.directory).join(DEBUG_DIRECTORY))
    }

    /// Whether nobody else will find the names of this.
    pub(super) fn has(&self, source: Source<'_>) -> bool {
        match source {
            Source::File(module) => self.0.files.iter().any(|(kept, _)| is_same(kept, module)),
            Source::Jit { pid } => self.process(pid).is_some(),
            Source::Kernel => false,
        }
    }
}

impl Places for Kept {
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let mut files = self.0.files.iter();
        let Some((_, file)) = files.find(|(kept, _)| is_same(kept, module)) else {
            return Vec::new();
        };
        let file = descriptor(file);
        // By its path if possible, because other files are looked for beside it.
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
}

/// Who wrote a jitdump, which is called `jit-PID.dump`.
fn writer(path: &Path) -> Option<Pid> {
    let name = path.file_name()?.to_str()?;
    let pid = name.strip_prefix("jit-")?.strip_suffix(".dump")?;
    pid.parse().ok()
}

/// A module of the recording and as the recorder knew it, which may have learnt less.
fn is_same(kept: &Module, module: &Module) -> bool {
    kept.path == module.path && (kept.build_id.is_none() || kept.build_id == module.build_id)
}

/// The path of what a descriptor of ours is of.
fn descriptor(file: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Without a build id to compare, only the same inode will do.
fn is_plausible(place: &Path, module: &Module) -> bool {
    let inode = module.identity.map(|identity| identity.inode);
    module.build_id.is_some()
        || (inode.is_some() && identity(place).map(|(_, inode)| inode) == inode)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn namespace(process: &str) -> Option<(u64, u64)> {
    identity(Path::new(&format!("/proc/{process}/ns/mnt")))
}

const DELETED: &[u8] = b" (deleted)";

fn without_deleted(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    path_of(bytes.strip_suffix(DELETED).unwrap_or(bytes))
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
