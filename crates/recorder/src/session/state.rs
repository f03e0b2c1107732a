//! The state of processes, written before their first samples.

use prof_model::Pid;
use prof_perfdata::{Attr, Record, WriteError, encode};
use prof_procfs::Task;

use super::Session;
use crate::output::synthesize::{self, BuildIds};

impl Session {
    /// Writes the mappings of the kernel's code.
    pub(crate) fn begin_kernel(&mut self) -> Result<(), WriteError> {
        self.begin(|each| {
            synthesize::kernel(each);
            synthesize::kernel_modules(each);
        })
    }

    /// Writes the name of a command before it has called `exec`, as perf does.
    pub(crate) fn begin_command(&mut self, pid: Pid) -> Result<(), WriteError> {
        self.begin(|each| each(&synthesize::held_command(pid)))
    }

    /// Writes the state of processes that ran before sampling, unless it is known already. This
    /// must be soon after sampling began: nothing is known about processes that have ended.
    pub(crate) fn begin_processes(&mut self, pids: &[Pid]) -> Result<(), WriteError> {
        self.begin(|each| {
            let mut ids = BuildIds::default();
            for &pid in pids {
                synthesize::process(pid, &mut ids, each);
            }
        })
    }

    fn begin(
        &mut self,
        synthesize: impl FnOnce(&mut dyn FnMut(&Record<'_>)),
    ) -> Result<(), WriteError> {
        let Some(attr) = self.events.first_attr() else {
            return Ok(());
        };
        let mut out = Vec::new();
        synthesize(&mut |record: &Record<'_>| {
            if self.mappings.is_known(record) {
                return;
            }
            append(&mut out, attr, record);
            self.mappings.follow(record);
            self.interpreted.follow(record, &self.mappings);
            (self.trackers.probes).follow(record, &self.mappings.processes);
        });
        self.output.write(&out)
    }

    /// How many of the recorded processes still run. The record of an end can be lost.
    pub(crate) fn running(&self) -> u64 {
        let runs = |pid| Task::of(pid).goes_on();
        let processes = self.mappings.processes.iter();
        processes.filter(|&(pid, _)| pid > 0 && runs(pid)).count() as u64
    }

    /// The current state, as the records that a file begins with.
    pub(super) fn state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(attr) = self.events.first_attr() {
            let mut each = |record: &Record<'_>| append(&mut out, attr, record);
            self.mappings.synthesize(&mut each);
            let mut pids: Vec<_> = self.mappings.processes.iter().map(|it| it.0).collect();
            pids.sort_unstable();
            for pid in pids {
                self.interpreted.synthesize(pid, &mut each);
            }
        }
        out
    }
}

fn append(out: &mut Vec<u8>, attr: &Attr, record: &Record<'_>) {
    // The kernel has no name or path that is too long for a record.
    let _ = match record {
        Record::Mmap(mmap) => encode::mmap2(out, attr, mmap),
        Record::Comm(comm) => encode::comm(out, attr, comm),
        Record::Exit(exit) => {
            encode::exit(out, attr, exit);
            Ok(())
        }
        _ => Ok(()),
    };
}
