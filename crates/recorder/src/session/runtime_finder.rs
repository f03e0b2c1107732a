//! The runtimes of processes, each found in a file that its process has mapped.

use std::collections::HashMap;
use std::fs::File;
use std::time::Instant;

use prof_model::{Account, Budget, ModuleId, Pid};
use prof_runtimes::ReadError;
use prof_unwinder::Target;

use crate::live::interpreted::Now;
use crate::output::mapped_file::open_mapped;
use crate::session::read_budget::ReadBudget;

/// Finds runtimes of one kind (`R`), each by what its file says (`L`), and keeps them.
#[derive(Debug)]
pub(crate) struct RuntimeFinder<L, R> {
    kind: RuntimeKind<L, R>,
    processes: HashMap<Pid, ProcessRuntime<R>>,
    libraries: HashMap<ModuleId, Option<L>>,
    budget: Budget,
    reading: ReadBudget,
}

/// Reads a file of this name and at most so many bytes of its tables; returns also how many those
/// are.
type ReadLibrary<L> = fn(File, &str, u64) -> Result<(L, u64), ReadError>;

/// How runtimes of one kind are found.
#[derive(Debug)]
pub(crate) struct RuntimeKind<L, R> {
    /// Whether a file of this name may hold one.
    pub(crate) is_named: fn(&str) -> bool,
    /// Reads such a file.
    pub(crate) read: ReadLibrary<L>,
    /// The runtime of a process that has mapped the file, from this offset on, at this address, and
    /// has this account.
    pub(crate) at: fn(&L, u64, u64, &mut Now, &Account) -> Option<R>,
    /// Whether it stays as it is, whatever its process maps.
    pub(crate) is_final: fn(&R) -> bool,
}

/// The runtime of a process, if it has one, as of some of its mappings.
#[derive(Debug)]
struct ProcessRuntime<R> {
    generation: u64,
    version: u64,
    runtime: Option<R>,
    /// The module of its file.
    module: Option<ModuleId>,
}

impl<L, R> RuntimeFinder<L, R> {
    pub(crate) fn new(kind: RuntimeKind<L, R>, budget: Budget, reading: ReadBudget) -> Self {
        Self {
            kind,
            processes: HashMap::new(),
            libraries: HashMap::new(),
            budget,
            reading,
        }
    }

    /// The runtime of a process, if it was found, and the module of its file.
    pub(crate) fn get(&mut self, pid: Pid) -> Option<(&mut R, ModuleId)> {
        let known = self.processes.get_mut(&pid)?;
        Some((known.runtime.as_mut()?, known.module?))
    }

    /// Looks for the runtime of a process, unless it is known; returns whether it has looked.
    pub(crate) fn find(&mut self, target: &Target<'_>) -> bool {
        let (generation, version) = (target.process.generation(), target.process.version());
        if let Some(known) = self.processes.get(&target.pid)
            && known.generation == generation
            && (known.version == version || known.runtime.as_ref().is_some_and(self.kind.is_final))
        {
            return false;
        }
        let mut mappings = target.process.space().iter();
        let found = mappings.find_map(|mapping| {
            let module = &target.modules[mapping.module];
            let name = module.path.file_name()?.to_str()?;
            (mapping.executable && (self.kind.is_named)(name)).then_some(())?;
            let library = self.libraries.entry(mapping.module).or_insert_with(|| {
                let file = open_mapped(target.pid, module, &mapping.addresses()).ok()?;
                let begun = Instant::now();
                let most = self.reading.most(target.pid, begun);
                let read = (self.kind.read)(file, name, most);
                let bytes = read.as_ref().map_or(0, |(_, bytes)| *bytes);
                self.reading.spend(target.pid, bytes, begun.elapsed());
                if let Err(ReadError::TooLarge) = read {
                    self.reading.refuse(&module.path);
                }
                Some(read.ok()?.0)
            });
            let mut memory = Now::of_target(target)?;
            let (start, file_offset) = (mapping.start.0, mapping.file_offset.0);
            let library = library.as_ref()?;
            let account = self.budget.account(target.pid);
            let runtime = (self.kind.at)(library, start, file_offset, &mut memory, &account)?;
            Some((runtime, mapping.module))
        });
        let (runtime, module) = found.unzip();
        let known = ProcessRuntime {
            generation,
            version,
            runtime,
            module,
        };
        self.processes.insert(target.pid, known);
        true
    }

    /// Forgets a process that has ended; returns whether it was known.
    pub(crate) fn forget(&mut self, pid: Pid) -> bool {
        self.processes.remove(&pid).is_some()
    }

    /// The runtime of a process that has ended, which is forgotten.
    pub(crate) fn take(&mut self, pid: Pid) -> Option<R> {
        self.processes.remove(&pid)?.runtime
    }

    /// The runtimes of all processes, which are forgotten.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (Pid, R)> {
        let processes = std::mem::take(&mut self.processes).into_iter();
        processes.filter_map(|(pid, known)| Some((pid, known.runtime?)))
    }
}
