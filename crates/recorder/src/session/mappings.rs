//! Processes and what they have mapped.

use prof_model::{AbsoluteAddress, AddressSpace, Modules, Pid, Process, Processes, StackEnd};
use prof_perfdata::{Record, Sample, context, follow};
use prof_unwinder::Target;

use crate::output::synthesize_state::synthesize_state;
use crate::stack_outcome::UnwindStop;

/// The processes and their mappings, by the records so far.
#[derive(Debug, Default)]
pub(crate) struct KnownMappings {
    pub(crate) processes: Processes,
    pub(crate) modules: Modules,
}

impl KnownMappings {
    /// Learns from a record.
    pub(crate) fn follow(&mut self, record: &Record<'_>) {
        follow(record, &mut self.processes, &mut self.modules);
    }

    /// A process for the unwinder, if it is known.
    pub(crate) fn target(&self, pid: Pid) -> Option<Target<'_>> {
        Some(Target {
            pid,
            process: self.processes.get(pid)?,
            modules: &self.modules,
        })
    }

    fn space(&self, pid: Pid) -> Option<&AddressSpace> {
        self.processes.get(pid).map(Process::space)
    }

    /// Passes the records that describe the current state to `each`.
    pub(crate) fn synthesize(&self, each: &mut dyn FnMut(&Record<'_>)) {
        synthesize_state(&self.processes, &self.modules, each);
    }

    /// Whether a record says nothing new.
    pub(crate) fn is_known(&self, record: &Record<'_>) -> bool {
        match record {
            Record::Comm(comm) => {
                let process = self.processes.get(comm.pid);
                let name = process.and_then(|it| it.own_name(comm.tid));
                name.is_some_and(|name| comm.name == &**name)
            }
            Record::Mmap(mmap) => {
                let space = self.space(mmap.pid);
                let found = space.and_then(|space| space.find(AbsoluteAddress(mmap.address)));
                found.is_some_and(|found| {
                    let module = &self.modules[found.module];
                    found.start.0 == mmap.address
                        && found.end.0 == mmap.address.saturating_add(mmap.length)
                        && found.file_offset.0 == mmap.file_offset
                        && module.path == mmap.path
                        && (module.build_id, module.identity) == (mmap.build_id, mmap.identity)
                })
            }
            _ => false,
        }
    }

    /// Whether the function of a chain was called from its own file: then an allocator maps memory
    /// in order to hand it out, which counts at that time.
    pub(crate) fn is_internal(&self, pid: Pid, chain: &[u64]) -> bool {
        let space = self.space(pid);
        let mut user = (chain.iter())
            .skip_while(|&&at| at != context::USER)
            .skip(1);
        let mut module = || Some(space?.find(AbsoluteAddress(*user.next()?))?.module);
        let (function, caller) = (module(), module());
        function.is_some() && function == caller
    }

    /// Where the chain of a sample stops, if that is before the root.
    pub(crate) fn stop(
        &self,
        sample: &Sample<'_>,
        chain: &[u64],
        end: StackEnd,
    ) -> Option<UnwindStop> {
        if end.is_whole() || !end.counts() || end == StackEnd::NotUnwound {
            return None;
        }
        let last = chain.last().copied();
        let last = last.filter(|&last| last < context::MAX);
        let address = AbsoluteAddress(last.unwrap_or(sample.ip));
        let mapping = self.space(sample.pid).and_then(|it| it.find(address));
        Some(UnwindStop {
            end,
            module: mapping.map(|mapping| mapping.module),
            offset: mapping.map_or(address.0, |mapping| mapping.file_offset_of(address).0),
        })
    }
}
