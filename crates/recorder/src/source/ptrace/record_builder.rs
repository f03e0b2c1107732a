//! Builds records as the kernel would have written them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use prof_events::system;
use prof_events::tracing::lacks_privileges;
use prof_model::{Pid, Tid, UserRegisters};
use prof_perfdata::{Attr, Comm, CpuMode, Mmap, Record, Stamp, Task, encode};

use super::PtraceSampler;
use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::readings::LiveReading;
use crate::output::synthesize::{self, BuildIds, MappingKey};
use crate::queue::message::{InterpretedReading, SampledThread};

/// Encodes records for the session, which treats them like those of a ring.
#[derive(Debug)]
pub(super) struct RecordBuilder {
    attr: Attr,
    interpreters: InterpreterReader,
    /// Records that were not taken yet.
    pub(super) out: Vec<u8>,
    /// The name of a program that runs without its privileges.
    pub(super) unprivileged: Option<Box<str>>,
}

/// A thread's state when it was stopped.
pub(super) struct ThreadSample<'a> {
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    pub(super) cpu: u32,
    pub(super) ip: u64,
    /// The CPU time that it represents, in nanoseconds.
    pub(super) weight: u64,
    pub(super) registers: Option<UserRegisters>,
    /// Callers by frame pointers, after their marker.
    pub(super) chain: &'a [u64],
    pub(super) stack: &'a [u8],
    /// The interpreted functions that it runs, if any.
    pub(super) interpreted: Option<InterpretedReading>,
}

impl RecordBuilder {
    pub(super) fn new(attr: Attr, interpreters: InterpreterReader) -> Self {
        Self {
            attr,
            interpreters,
            out: Vec::new(),
            unprivileged: None,
        }
    }

    pub(super) fn forked(&mut self, parent: (Pid, Tid), child: (Pid, Tid)) {
        let task = self.task(parent, child);
        encode::fork(&mut self.out, &self.attr, &task);
    }

    pub(super) fn ended(&mut self, pid: Pid, tid: Tid) {
        let task = self.task((pid, pid), (pid, tid));
        encode::exit(&mut self.out, &self.attr, &task);
    }

    pub(super) fn named(&mut self, pid: Pid, tid: Tid, name: &[u8], exec: bool) {
        let comm = Comm {
            stamp: stamp(pid, tid),
            pid,
            tid,
            exec,
            name: OsStr::from_bytes(name),
        };
        if exec && self.unprivileged.is_none() && lacks_privileges(pid) {
            self.unprivileged = Some(String::from_utf8_lossy(name).into());
        }
        // The kernel's names are never too long.
        let _ = encode::comm(&mut self.out, &self.attr, &comm);
    }

    /// Reports the mappings that are not among the `known` ones, and replaces these by all current
    /// ones.
    pub(super) fn mapped(&mut self, pid: Pid, known: &mut HashSet<MappingKey>) {
        let mut now = HashSet::with_capacity(known.len());
        let (out, attr) = (&mut self.out, &self.attr);
        let is_new = |mapping: MappingKey| {
            let is_new = !known.contains(&mapping);
            now.insert(mapping);
            is_new
        };
        let mut ids = BuildIds::default();
        synthesize::mappings(pid, &mut ids, is_new, &mut |record| {
            if let Record::Mmap(mmap) = record {
                let mmap = Mmap {
                    stamp: stamp(pid, pid),
                    ..*mmap
                };
                // The kernel has no path that is too long for a record.
                let _ = encode::mmap2(out, attr, &mmap);
            }
        });
        *known = now;
    }

    /// Reports how many nanoseconds a thread used since it was traced.
    pub(super) fn counted(&mut self, pid: Pid, tid: Tid, used: u64) {
        encode::read(&mut self.out, &self.attr, &stamp(pid, tid), used);
    }

    /// The interpreted functions of a stopped thread. Its stack was copied up to this many bytes.
    pub(super) fn interpreted(
        &mut self,
        (pid, tid): (Pid, Tid),
        registers: Option<UserRegisters>,
        stack: &[u8],
        limit: usize,
    ) -> Option<InterpretedReading> {
        let thread = SampledThread {
            pid,
            tid,
            registers: registers?,
            stack,
            is_full: stack.len() == limit,
        };
        self.interpreters.read(&thread, SinceSample::Stopped)
    }

    pub(super) fn sampled(&mut self, seen: ThreadSample<'_>) {
        let time = system::monotonic_now();
        if seen.interpreted.is_some() {
            let reading = LiveReading {
                interpreted: seen.interpreted,
                tail: None,
            };
            self.interpreters
                .readings()
                .leave((seen.tid, time), reading);
        }
        let sample = encode::NewSample {
            mode: CpuMode::User,
            ip: seen.ip,
            pid: seen.pid,
            tid: seen.tid,
            time,
            id: PtraceSampler::ID,
            cpu: seen.cpu,
            period: seen.weight,
            callchain: seen.chain,
            user_registers: seen.registers,
            user_stack: seen.stack,
            ..encode::NewSample::default()
        };
        // It fits: the dump is as long as a kernel's would be.
        let _ = encode::sample(&mut self.out, &self.attr, &sample);
    }

    fn task(&self, parent: (Pid, Tid), child: (Pid, Tid)) -> Task {
        let stamp = stamp(child.0, child.1);
        Task {
            stamp,
            pid: child.0,
            tid: child.1,
            parent_pid: parent.0,
            parent_tid: parent.1,
            time: stamp.time.unwrap_or(0),
            existed: false,
        }
    }
}

fn stamp(pid: Pid, tid: Tid) -> Stamp {
    Stamp {
        pid: Some(pid),
        tid: Some(tid),
        time: Some(system::monotonic_now()),
        id: Some(PtraceSampler::ID),
        ..Stamp::default()
    }
}
