//! The runtimes that compile code in processes, and the frames of their code.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use prof_model::{AbsoluteAddress, Account, AddressSpace, Budget, Charge, ModuleId, Pid};
use prof_procfs::Task;
use prof_runtimes::ReadError;
use prof_runtimes::hotspot::{self, Frames, HotSpot};
use prof_runtimes::v8::{self, CodePlace, V8};
use prof_unwinder::{FrameWords, JitCode, JitFrames, Target};

use crate::live::interpreted::Now;
use crate::session::read_budget::ReadBudget;
use crate::session::runtime_finder::{RuntimeFinder, RuntimeKind};

/// The runtimes of processes.
pub(crate) type JitRuntimes = RuntimeFinder<Library, Runtime>;

/// A file that contains a runtime.
#[derive(Debug)]
pub(crate) enum Library {
    HotSpot(hotspot::Library),
    V8(v8::Library),
}

/// A runtime in a process.
#[derive(Debug)]
pub(crate) enum Runtime {
    HotSpot(Box<HotSpot>),
    V8 {
        engine: Box<V8>,
        /// Whether it writes a perf map, which has all names; `None` before it runs functions.
        names_itself: Option<bool>,
    },
}

/// The names of the code of runtimes that have ended, as perf maps.
#[derive(Debug)]
pub(crate) struct JitNames {
    budget: Budget,
    /// The maps that are kept, each with what it is charged to.
    maps: HashMap<Pid, (String, Charge)>,
}

/// A runtime at the time of a sample.
pub(crate) struct JitRuntime<'a> {
    runtime: &'a mut Runtime,
    /// Where its file is mapped.
    file: MappedFile<'a>,
    memory: Now,
    now: u64,
}

/// The mappings of a file in a process.
struct MappedFile<'a> {
    space: &'a AddressSpace,
    module: ModuleId,
}

impl MappedFile<'_> {
    /// What is mapped at an address, if it is of the file.
    fn offset(&self, address: u64) -> Option<u64> {
        let mapping = self.space.find(AbsoluteAddress(address))?;
        let offset = address.wrapping_sub(mapping.start.0);
        (mapping.module == self.module).then(|| mapping.file_offset.0.wrapping_add(offset))
    }
}

pub(crate) fn jit_runtimes(budget: Budget, reading: ReadBudget) -> JitRuntimes {
    let kind = RuntimeKind {
        is_named: Library::is_named,
        read: Library::read,
        at: Library::at,
        is_final: |_: &Runtime| true,
    };
    RuntimeFinder::new(kind, budget, reading)
}

impl Library {
    fn is_named(name: &str) -> bool {
        hotspot::Library::is_named(name) || v8::Library::is_named(name)
    }

    fn read(file: File, name: &str, most: u64) -> Result<(Self, u64), ReadError> {
        Ok(match hotspot::Library::is_named(name) {
            true => {
                let (library, bytes) = hotspot::Library::read(file, most)?;
                (Self::HotSpot(library), bytes)
            }
            false => {
                let (library, bytes) = v8::Library::read(file, most)?;
                (Self::V8(library), bytes)
            }
        })
    }

    fn at(
        &self,
        start: u64,
        file_offset: u64,
        memory: &mut Now,
        account: &Account,
    ) -> Option<Runtime> {
        match self {
            Self::HotSpot(library) => {
                let machine = library.at(start, file_offset, memory, account)?;
                Some(Runtime::HotSpot(Box::new(machine)))
            }
            Self::V8(library) => Some(Runtime::V8 {
                engine: Box::new(library.start(account)?),
                names_itself: None,
            }),
        }
    }
}

/// Whether a process writes a perf map: V8 opens it before it runs any function.
fn writes_perf_map(pid: Pid) -> bool {
    let is_map = |path: PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("perf-") && name.ends_with(".map")
    };
    Task::of(pid).open_files().any(is_map)
}

impl Runtime {
    /// Replaces the addresses of code that takes the place of other code by synthetic ones.
    pub(crate) fn move_replacing(&self, addresses: &mut [u64]) {
        if let Self::HotSpot(machine) = self {
            machine.move_replacing(addresses);
        }
    }

    fn forget_names(&mut self) {
        match self {
            Self::HotSpot(machine) => machine.forget_names(),
            Self::V8 { engine, .. } => engine.forget_names(),
        }
    }

    pub(crate) fn write_perf_map(&self, map: &mut String) {
        match self {
            Self::HotSpot(machine) => machine.write_perf_map(map),
            Self::V8 { engine, .. } => engine.write_perf_map(map),
        }
    }
}

/// Forgets the names that are kept of a process.
pub(crate) fn forget_names(runtimes: &mut JitRuntimes, pid: Pid) {
    if let Some((runtime, _)) = runtimes.get(pid) {
        runtime.forget_names();
    }
}

impl JitNames {
    /// Ended processes may keep this part of the budget.
    const PART: usize = 4;

    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            maps: HashMap::new(),
        }
    }

    /// Adds those of a runtime. Of two in one process, the names of the later one count.
    pub(crate) fn add(&mut self, pid: Pid, runtime: Runtime) {
        let account = self.budget.account(pid);
        let (mut map, mut charge) =
            (self.maps.remove(&pid)).unwrap_or_else(|| (String::new(), account.for_names()));
        runtime.write_perf_map(&mut map);
        // What it has kept needs more.
        drop(runtime);
        map.shrink_to_fit();
        match charge.set(map.len()) {
            true if map.is_empty() => {}
            true => _ = self.maps.insert(pid, (map, charge)),
            false => account.leave_out(),
        }
    }

    /// Drops the largest maps while those of all take too much; returns whose they were.
    pub(crate) fn shrink(&mut self) -> Vec<Pid> {
        let mut dropped = Vec::new();
        let bytes = |maps: &HashMap<Pid, (String, Charge)>| -> usize {
            maps.values().map(|(map, _)| map.len()).sum()
        };
        while bytes(&self.maps) > self.budget.total() / Self::PART {
            let largest = self.maps.iter().max_by_key(|(_, (map, _))| map.len());
            let Some(pid) = largest.map(|(&pid, _)| pid) else {
                break;
            };
            self.maps.remove(&pid);
            dropped.push(pid);
        }
        dropped
    }

    pub(crate) fn take_maps(&mut self) -> HashMap<Pid, String> {
        let maps = std::mem::take(&mut self.maps).into_iter();
        maps.map(|(pid, (map, _))| (pid, map)).collect()
    }
}

impl<'a> JitRuntime<'a> {
    /// Of memory, for a sample: deep stacks have a few functions, repeated.
    const READS: u32 = 1 << 16;

    /// The runtime of a process at the time of a sample, if it has one.
    pub(crate) fn of(all: &'a mut JitRuntimes, target: &Target<'a>, now: u64) -> Option<Self> {
        let memory = Now::of_target(target)?.with_limit(Self::READS);
        all.find(target);
        let (runtime, module) = all.get(target.pid)?;
        let space = target.process.space();
        Some(Self {
            runtime,
            file: MappedFile { space, module },
            memory,
            now,
        })
    }

    fn hotspot(&mut self) -> Option<(&mut HotSpot, &mut Now)> {
        match &mut self.runtime {
            Runtime::HotSpot(machine) => Some((machine, &mut self.memory)),
            Runtime::V8 { .. } => None,
        }
    }

    /// The code at an address.
    pub(crate) fn code_at(&mut self, address: u64) -> Option<JitCode> {
        /// The rest of a function's code is not looked at.
        const LOOKED_AT: u64 = 64;
        if self.is_builtin(address) {
            return Some(JitCode {
                range: address..address.saturating_add(LOOKED_AT),
                frames: JitFrames::V8Builtin,
            });
        }
        if let Runtime::V8 { engine, .. } = &mut self.runtime {
            let start = engine.code_start(&mut self.memory, address, self.now);
            return Some(JitCode {
                range: start.unwrap_or(address)..address.saturating_add(LOOKED_AT),
                frames: JitFrames::V8 {
                    is_start: start.is_some(),
                },
            });
        }
        let now = self.now;
        let (machine, memory) = self.hotspot()?;
        let Some(code) = machine.code_at(memory, address, now) else {
            return machine.holds(address).then_some(JitCode {
                range: address..address,
                frames: JitFrames::None,
            });
        };
        Some(JitCode {
            range: code.range,
            frames: match code.frames {
                Frames::Fixed { size, complete } => JitFrames::Fixed { size, complete },
                Frames::Stub {
                    size,
                    pushes_return_address,
                } => JitFrames::Stub {
                    size,
                    pushes_return_address,
                },
                Frames::Interpreter => JitFrames::HotSpotInterpreter,
                Frames::Continuation => JitFrames::HotSpotContinuation,
                Frames::Unknown => JitFrames::Unknown,
            },
        })
    }

    /// The addresses of a method's bytecodes.
    pub(crate) fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        let now = self.now;
        let (machine, memory) = self.hotspot()?;
        machine.bytecodes(memory, method, now)
    }

    /// The address that represents a method's frames, of which the bytecodes are known.
    pub(crate) fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        let now = self.now;
        let (machine, memory) = self.hotspot()?;
        machine.interpreted(memory, method, now)
    }

    /// Whether frames have functions.
    pub(crate) fn has_functions(&self) -> bool {
        match &self.runtime {
            Runtime::V8 { names_itself, .. } => *names_itself != Some(true),
            Runtime::HotSpot(_) => false,
        }
    }

    /// Whether this is code of the runtime, without unwind tables, that is in its file.
    pub(crate) fn is_builtin(&self, address: u64) -> bool {
        match &self.runtime {
            Runtime::V8 { engine, .. } => {
                (self.file.offset(address)).is_some_and(|offset| engine.is_builtin(offset))
            }
            Runtime::HotSpot(_) => false,
        }
    }

    /// The address that represents the function of a frame, whose code is in a file or was compiled
    /// at run time.
    pub(crate) fn function(
        &mut self,
        address: u64,
        in_file: bool,
        words: Option<&FrameWords>,
    ) -> Option<u64> {
        let code = match in_file {
            true => CodePlace::InFile(self.file.offset(address)?),
            false => CodePlace::RunTime(address),
        };
        let Runtime::V8 {
            engine,
            names_itself,
        } = &mut self.runtime
        else {
            return None;
        };
        let function = engine.function(&mut self.memory, code, words, self.now)?;
        let pid = self.memory.pid();
        let names_itself = *names_itself.get_or_insert_with(|| writes_perf_map(pid));
        (!names_itself).then_some(function)
    }
}
