//! The files that a recording's code was mapped from, as they are now.

use std::fs::File;
use std::io;

use prof_filemap::MappedFile;
use prof_model::{Mapping, Module, Pid};
use prof_unwinder::ModuleFiles;

/// Opens modules by their recorded paths. Processes are gone, or are others by now, so nothing is
/// asked of `/proc`. A file with another build id than the recorded one is refused: its unwind
/// tables are those of other code.
pub(super) struct RecordedFiles;

impl ModuleFiles for RecordedFiles {
    fn open(&mut self, _: Pid, module: &Module, _: &Mapping) -> io::Result<File> {
        if let Some(recorded) = module.build_id {
            let file = MappedFile::open(&module.path).map_err(io::Error::other)?;
            let found = object::File::parse(&*file).map_err(io::Error::other)?;
            let found = object::Object::build_id(&found).ok().flatten();
            if found.is_some_and(|found| !found.starts_with(recorded.as_bytes())) {
                let reason = format!("{} was replaced since", module.path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
        File::open(&module.path)
    }
}
