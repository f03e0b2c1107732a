//! Several files of one path in a recording: containers have files of their own, and programs are
//! replaced while they run. Build ids tell them apart; without, only inodes do.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prof_model::{BuildId, FileIdentity, Module, ModuleKind, Modules};
use prof_procfs::without_deleted;

/// The files of those paths that stand for several files in a recording, or in several recordings
/// that are reported as one. At most one of them is the file at the path now.
///
/// A file that is alone at its path may have been copied here from another machine, with another
/// inode, and is taken to be the same.
#[derive(Clone, Debug, Default)]
pub struct AmbiguousPaths {
    by_path: HashMap<PathBuf, Vec<RecordedFile>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordedFile {
    build_id: Option<BuildId>,
    identity: Option<FileIdentity>,
}

impl AmbiguousPaths {
    /// The files of all modules of a recording, or of several.
    pub fn of(modules: &Modules) -> Self {
        let mut by_path: HashMap<PathBuf, Vec<RecordedFile>> = HashMap::new();
        for (_, module) in modules.iter().filter(|(_, it)| it.kind == ModuleKind::File) {
            let files = by_path.entry(without_deleted(&module.path).to_owned());
            let files = files.or_default();
            let file = RecordedFile::of(module);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        by_path.retain(|_, files| are_several(files));
        Self { by_path }
    }

    /// Whether a file whose build id was checked, as far as there is one, may be used for `module`.
    pub(crate) fn accept(&self, module: &Module, path: &Path) -> bool {
        if module.build_id.is_some() {
            return true;
        }
        let Some(files) = self.at(module) else {
            return true;
        };
        let (Some(identity), Ok(found)) = (module.identity, fs::metadata(path)) else {
            return false;
        };
        let device = found.dev();
        let device = (rustix::fs::major(device), rustix::fs::minor(device));
        let same_inode = |file: &RecordedFile| file.inode() == Some(found.ino());
        let on_device = |file: &RecordedFile| file.device() == Some(device) && same_inode(file);
        // Some file systems (btrfs, overlayfs) show another device than the one that is recorded.
        let is_candidate: &dyn Fn(&RecordedFile) -> bool = match files.iter().any(on_device) {
            true => &on_device,
            false => &same_inode,
        };
        let candidates: Vec<_> = files
            .iter()
            .filter(|it| is_candidate(it))
            .copied()
            .collect();
        let ours = RecordedFile {
            build_id: None,
            identity: Some(identity),
        };
        candidates.contains(&ours) && !are_several(&candidates)
    }

    /// Whether symbols that are stored for a file of this identity, without a build id, are those
    /// of `module`, which has the same path and no build id either.
    pub(crate) fn are_of(&self, module: &Module, stored: Option<FileIdentity>) -> bool {
        let files = self.at(module);
        let (Some(stored), Some(identity)) = (stored, module.identity) else {
            return files.is_none();
        };
        let is_candidate = |file: &&RecordedFile| {
            (file.device(), file.inode()) == (Some(identity.device), Some(identity.inode))
        };
        let candidates = files.into_iter().flatten().filter(is_candidate);
        let candidates: Vec<RecordedFile> = candidates.copied().collect();
        stored == identity || (stored.may_be(&identity) && !are_several(&candidates))
    }

    fn at(&self, module: &Module) -> Option<&[RecordedFile]> {
        let files = self.by_path.get(without_deleted(&module.path));
        files.map(Vec::as_slice)
    }
}

impl RecordedFile {
    fn of(module: &Module) -> Self {
        Self {
            build_id: module.build_id,
            identity: module.identity,
        }
    }

    fn device(&self) -> Option<(u32, u32)> {
        self.identity.map(|identity| identity.device)
    }

    fn inode(&self) -> Option<u64> {
        self.identity.map(|identity| identity.inode)
    }

    /// Whether both may be one file, of one path.
    fn may_be(&self, other: &Self) -> bool {
        match (self.identity, other.identity) {
            _ if self.build_id != other.build_id => false,
            _ if self.build_id.is_some() => true,
            (Some(one), Some(other)) => one.may_be(&other),
            (one, other) => one == other,
        }
    }
}

/// Whether these are more than one file.
fn are_several(files: &[RecordedFile]) -> bool {
    let mut pairs = (1..).zip(files);
    pairs.any(|(next, file)| files.iter().skip(next).any(|other| !file.may_be(other)))
}
