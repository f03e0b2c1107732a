//! Opens the files of modules for unwinding.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use prof_model::{Mapping, Module, Pid};
use prof_unwinder::{ModuleFiles, TablesRead};

use crate::live::target_memory::Reads;
use crate::output::mapped_file::open_mapped;
use crate::session::read_budget::ReadBudget;

/// Opens modules by [`open_mapped`], and reads as much as there is a budget for.
#[derive(Clone, Debug)]
pub(crate) struct LiveFiles {
    budget: ReadBudget,
    reads: Reads,
}

impl LiveFiles {
    pub(crate) fn new(budget: ReadBudget, reads: Reads) -> Self {
        Self { budget, reads }
    }
}

impl ModuleFiles for LiveFiles {
    fn open(&mut self, pid: Pid, module: &Module, mapping: &Mapping) -> io::Result<File> {
        let (module, addresses) = (module.clone(), mapping.addresses());
        let opened = (self.reads).files(pid, move || open_mapped(pid, &module, &addresses));
        opened.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }

    fn most_bytes(&mut self, pid: Pid) -> u64 {
        self.budget.most(pid, Instant::now())
    }

    fn has_read(&mut self, pid: Pid, module: &Module, read: TablesRead, time: Duration) {
        match read {
            TablesRead::Bytes(bytes) => self.budget.spend(pid, bytes, time),
            TablesRead::TooLarge => self.budget.refuse(&module.path),
        }
    }
}
