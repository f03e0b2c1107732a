//! Opens the files of modules for unwinding.

use std::fs::File;
use std::io;

use prof_model::{Mapping, Module, Pid};
use prof_unwinder::ModuleFiles;

use crate::output::mapped_file::open_mapped;

/// Opens modules by [`open_mapped`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveFiles;

impl ModuleFiles for LiveFiles {
    fn open(&mut self, pid: Pid, module: &Module, mapping: &Mapping) -> io::Result<File> {
        open_mapped(pid, module, mapping)
    }
}
