//! Opens the files of modules for unwinding.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use prof_model::{Mapping, Module, Pid};
use prof_unwinder::{ModuleFiles, TablesRead};

use crate::output::mapped_file::open_mapped;
use crate::session::read_budget::ReadBudget;

/// Opens modules by [`open_mapped`], and reads as much as there is a budget for.
#[derive(Clone, Debug)]
pub(crate) struct LiveFiles(ReadBudget);

impl LiveFiles {
    pub(crate) fn new(reading: ReadBudget) -> Self {
        Self(reading)
    }
}

impl ModuleFiles for LiveFiles {
    fn open(&mut self, pid: Pid, module: &Module, mapping: &Mapping) -> io::Result<File> {
        open_mapped(pid, module, &mapping.addresses())
    }

    fn most_bytes(&mut self, pid: Pid) -> u64 {
        self.0.most(pid, Instant::now())
    }

    fn has_read(&mut self, pid: Pid, module: &Module, read: TablesRead, time: Duration) {
        match read {
            TablesRead::Bytes(bytes) => self.0.spend(pid, bytes, time),
            TablesRead::TooLarge => self.0.refuse(&module.path),
        }
    }
}
