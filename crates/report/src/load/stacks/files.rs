//! The files that a recording's code was mapped from, as they are now.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use prof_filemap::{MappedFile, foreign};
use prof_model::{Mapping, Module, Pid};
use prof_procfs::Task;
use prof_unwinder::ModuleFiles;

use crate::load::LoadOptions;

/// Opens modules by their recorded paths: as the process sees it if it still lives, else as we do.
/// A file with another build id than the recorded one is refused: its unwind tables are those of
/// other code. What can't be checked is not taken from a process, which may be another one by now.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct RecordedFiles {
    /// Where the recorded machine's files are, if not below `/`.
    symfs: Option<PathBuf>,
}

impl RecordedFiles {
    pub(in crate::load) fn of(options: &LoadOptions) -> Self {
        Self {
            symfs: options.symfs.clone(),
        }
    }
}

impl ModuleFiles for RecordedFiles {
    fn open(&mut self, pid: Pid, module: &Module, _: &Mapping) -> io::Result<File> {
        let path = match &self.symfs {
            Some(root) => &root.join(module.path.strip_prefix("/").unwrap_or(&module.path)),
            None => &module.path,
        };
        let seen = Task::of(pid).below_root(&module.path);
        if self.symfs.is_none()
            && let Ok(file) = foreign::open(&seen)
            && matches!(is_same(&file, module), Ok(Some(true)))
        {
            return Ok(file);
        }
        let file = foreign::open(path)?;
        match is_same(&file, module)? {
            Some(false) => {
                let reason = format!("{} was replaced since", module.path.display());
                Err(io::Error::new(io::ErrorKind::InvalidData, reason))
            }
            _ => Ok(file),
        }
    }
}

/// Whether it is the file that was recorded; `None` if that can't be known.
fn is_same(file: &File, module: &Module) -> io::Result<Option<bool>> {
    let Some(recorded) = module.build_id else {
        let inode = module.identity.map(|identity| identity.inode);
        let found = file.metadata()?.ino();
        // A copy is another inode and may be the same all the same.
        return Ok(inode.filter(|&inode| inode == found).map(|_| true));
    };
    let bytes = MappedFile::from_file(file)?;
    let found = object::File::parse(&*bytes).map_err(io::Error::other)?;
    let found = object::Object::build_id(&found).ok().flatten();
    Ok(found.map(|found| found.starts_with(recorded.as_bytes())))
}
