//! The Java virtual machines of processes, and the frames of their compiled code.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use prof_model::{Mapping, ModuleId, Pid};
use prof_runtimes::hotspot::{Frames, HotSpot, Library};
use prof_unwinder::{JitCode, JitFrames, Target};

use crate::live::python::Now;
use crate::output::mapped_file::open_mapped;

/// Keeps the virtual machines of processes.
#[derive(Debug, Default)]
pub(crate) struct JavaMachines {
    machines: HashMap<Pid, Known>,
    libraries: HashMap<ModuleId, Option<Library>>,
}

/// The virtual machine of a process, if it is known.
#[derive(Debug)]
struct Known {
    generation: u64,
    version: u64,
    machine: Option<HotSpot>,
}

/// A virtual machine at the time of a sample.
pub(crate) struct JavaMachine<'a> {
    pub(crate) machine: &'a mut HotSpot,
    pub(crate) memory: Now,
    pub(crate) now: u64,
    /// How many more queries are allowed.
    pub(crate) left: u32,
}

impl JavaMachines {
    /// The virtual machine of a process at the time of a sample.
    pub(crate) fn at<'a>(&'a mut self, target: &Target<'_>, now: u64) -> Option<JavaMachine<'a>> {
        let memory = Now::of(target.pid)?;
        self.find(target);
        let machine = self.machines.get_mut(&target.pid)?.machine.as_mut()?;
        Some(JavaMachine {
            machine,
            memory,
            now,
            left: JavaMachine::QUESTIONS,
        })
    }

    /// Looks for the virtual machine of a process, unless it is known.
    fn find(&mut self, target: &Target<'_>) {
        let (generation, version) = (target.process.generation(), target.process.version());
        if let Some(known) = self.machines.get(&target.pid)
            && known.generation == generation
            && (known.machine.is_some() || known.version == version)
        {
            return;
        }
        let mut mappings = target.process.space().iter();
        let machine = mappings.find_map(|mapping| {
            let path: &Path = &target.modules[mapping.module].path;
            let name = path.file_name()?.to_str()?;
            (mapping.executable && Library::is_named(name)).then_some(())?;
            let library = self.library(target, mapping)?;
            let mut memory = Now::of(target.pid)?;
            library.at(mapping.start.0, mapping.file_offset.0, &mut memory)
        });
        let known = Known {
            generation,
            version,
            machine,
        };
        self.machines.insert(target.pid, known);
    }

    fn library(&mut self, target: &Target<'_>, mapping: &Mapping) -> Option<&Library> {
        let module = mapping.module;
        let library = self.libraries.entry(module).or_insert_with(|| {
            let file = open_mapped(target.pid, &target.modules[module], mapping);
            file.ok().and_then(Library::read)
        });
        library.as_ref()
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.machines.remove(&pid);
    }
}

impl JavaMachine<'_> {
    /// Limits the cost of a hostile process: deep stacks have a few functions, repeated.
    const QUESTIONS: u32 = 1 << 16;

    /// The code at an address.
    pub(crate) fn code_at(&mut self, address: u64) -> Option<JitCode> {
        self.left = self.left.checked_sub(1)?;
        let Some(code) = (self.machine).code_at(&mut self.memory, address, self.now) else {
            return self.machine.holds(address).then_some(JitCode {
                range: address..address,
                frames: JitFrames::None,
            });
        };
        Some(JitCode {
            range: code.range,
            frames: match code.frames {
                Frames::Fixed { size, complete } => JitFrames::Fixed { size, complete },
                Frames::Interpreter => JitFrames::HotSpotInterpreter,
                Frames::Unknown => JitFrames::Unknown,
            },
        })
    }

    /// The addresses of a method's bytecodes.
    pub(crate) fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        self.left = self.left.checked_sub(1)?;
        self.machine.bytecodes(&mut self.memory, method)
    }
}
