//! The Java virtual machines of processes, and the frames of their code.

use std::collections::HashMap;
use std::ops::Range;

use prof_model::Pid;
use prof_runtimes::hotspot::{Frames, HotSpot, Library};
use prof_unwinder::{JitCode, JitFrames, Target};

use crate::live::interpreted::Now;
use crate::session::runtime_finder::{RuntimeFinder, RuntimeKind};

/// The virtual machines of processes.
pub(crate) type JavaMachines = RuntimeFinder<Library, HotSpot>;

/// The names of the code of virtual machines that have ended, as perf maps.
#[derive(Debug, Default)]
pub(crate) struct JavaNames {
    maps: HashMap<Pid, String>,
    /// The length of all maps.
    bytes: usize,
}

impl JavaNames {
    /// The length of all maps, at most.
    const BYTES: usize = 128 << 20;

    /// Adds those of a machine. Of two in one process, the names of the later one count.
    pub(crate) fn add(&mut self, pid: Pid, machine: &HotSpot) {
        if self.bytes >= Self::BYTES {
            return;
        }
        let mut map = self.maps.remove(&pid).unwrap_or_default();
        let before = map.len();
        machine.write_perf_map(&mut map);
        self.bytes += map.len() - before;
        if !map.is_empty() {
            self.maps.insert(pid, map);
        }
    }

    pub(crate) fn into_maps(self) -> HashMap<Pid, String> {
        self.maps
    }
}

/// A virtual machine at the time of a sample.
pub(crate) struct JavaMachine<'a> {
    machine: &'a mut HotSpot,
    memory: Now,
    now: u64,
    /// How many more queries are allowed.
    left: u32,
}

pub(crate) fn java_machines() -> JavaMachines {
    RuntimeFinder::new(RuntimeKind {
        is_named: Library::is_named,
        read: Library::read,
        at: Library::at,
        is_final: |_| true,
    })
}

impl<'a> JavaMachine<'a> {
    /// Limits the cost of a hostile process: deep stacks have a few functions, repeated.
    const QUERIES: u32 = 1 << 16;

    /// The virtual machine of a process at the time of a sample, if it has one.
    pub(crate) fn of(all: &'a mut JavaMachines, target: &Target<'_>, now: u64) -> Option<Self> {
        let memory = Now::of_target(target)?;
        all.find(target);
        Some(Self {
            machine: all.get(target.pid)?,
            memory,
            now,
            left: Self::QUERIES,
        })
    }

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
        self.left = self.left.checked_sub(1)?;
        (self.machine).bytecodes(&mut self.memory, method, self.now)
    }

    /// The address that represents a method's frames, of which the bytecodes are known.
    pub(crate) fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        (self.machine).interpreted(&mut self.memory, method, self.now)
    }
}
