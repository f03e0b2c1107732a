//! The traced threads: followed as they come and go, stopped when they run, and sampled.

mod follow;

use std::collections::{HashMap, HashSet};

use prof_events::LiveMemory;
use prof_events::tracing::{Stopped, Tracer, Why};
use prof_model::{Pid, Tid};
use prof_procfs::Task;

use crate::output::synthesize::MappingKey;
use crate::source::ptrace::frame_pointers::FramePointers;
use crate::source::ptrace::record_builder::{RecordBuilder, ThreadSample};
use crate::source::ptrace::tracer_cpu::TracerCpu;

/// The state of all targets.
pub(in crate::source::ptrace) struct Tracees {
    tracer: Tracer,
    pub(in crate::source::ptrace) builder: RecordBuilder,
    threads: HashMap<Tid, TracedThread>,
    processes: HashMap<Pid, Process>,
    /// CPU time of threads that ended unseen. It goes to the next thread that is seen for the first
    /// time: the chance that a short thread is seen is proportional to its CPU time, so those that
    /// are seen represent the others.
    unattributed: u64,
    /// The most that one sample represents, in nanoseconds.
    most: u64,
    /// Bytes of stack to copy.
    dump: usize,
    stack: Vec<u8>,
    /// Chains of frame pointers, if requested.
    frames: Option<FramePointers>,
    cpu: TracerCpu,
}

#[derive(Default)]
struct TracedThread {
    pid: Pid,
    /// CPU time up to the last sample, in nanoseconds.
    accounted: u64,
    /// CPU time when it was first traced.
    before: u64,
    sampled: bool,
    /// Whether it was asked to stop, and has not stopped yet.
    stop_requested: bool,
    /// Whether it waits for us to let it call exec, when sampling begins.
    held: bool,
    name: Vec<u8>,
    cpu: u32,
    /// How often in a row it did not run in a pass, and how many passes to skip.
    idle: u8,
    skip: u8,
}

impl TracedThread {
    /// The weight of a sample, at most `most`, that is taken when the thread has used this much CPU
    /// time; in nanoseconds.
    fn weigh(&mut self, time: u64, unattributed: &mut u64, most: u64) -> u64 {
        let mut weight = time.saturating_sub(self.accounted);
        if !self.sampled {
            weight = weight.saturating_add(std::mem::take(unattributed));
        }
        (self.accounted, self.sampled) = (time, true);
        weight.clamp(1, most)
    }
}

#[derive(Default)]
struct Process {
    threads: usize,
    /// The size of its address space, and its page faults: with neither changed, it runs no code
    /// of a new mapping.
    memory: (u64, u64),
    mapped: HashSet<MappingKey>,
}

impl Tracees {
    /// The most passes between checks of a thread that never runs.
    const LONGEST_SKIP: u8 = 8;

    /// The most periods that one sample may represent. Work of a thread while it could not be
    /// sampled belongs to no single place: it counts as not sampled.
    const MOST_PERIODS: u64 = 50;

    /// `stacks`: how many bytes of each to copy, and whether to follow frame pointers.
    pub(in crate::source::ptrace) fn new(
        tracer: Tracer,
        builder: RecordBuilder,
        hertz: u64,
        stacks: (usize, bool),
    ) -> Self {
        Self {
            tracer,
            builder,
            threads: HashMap::new(),
            processes: HashMap::new(),
            unattributed: 0,
            most: Self::MOST_PERIODS * 1_000_000_000 / hertz.max(1),
            dump: stacks.0,
            stack: Vec::new(),
            frames: stacks.1.then(FramePointers::default),
            cpu: TracerCpu::of_this_thread(),
        }
    }

    pub(in crate::source::ptrace) fn all_ended(&self) -> bool {
        self.threads.is_empty()
    }

    /// Discards the threads' work so far: sampling was disabled.
    pub(in crate::source::ptrace) fn forget_time(&mut self) {
        self.unattributed = 0;
        for (&tid, thread) in &mut self.threads {
            thread.accounted = Task::thread(thread.pid, tid)
                .cpu_time()
                .unwrap_or(thread.accounted);
        }
    }

    /// Asks all running threads to stop.
    pub(in crate::source::ptrace) fn poll(&mut self) {
        for (&tid, thread) in &mut self.threads {
            if thread.stop_requested || thread.held {
                continue;
            }
            if thread.skip > 0 {
                thread.skip -= 1;
                continue;
            }
            let Ok(stat) = Task::thread(thread.pid, tid).stat() else {
                continue;
            };
            if stat.name != thread.name {
                self.builder.named(thread.pid, tid, &stat.name, false);
                thread.name = stat.name;
            }
            thread.cpu = stat.cpu;
            if !stat.state.is_runnable() {
                thread.idle = thread.idle.saturating_add(1);
                thread.skip = thread.idle.min(Self::LONGEST_SKIP);
                continue;
            }
            thread.idle = 0;
            self.cpu.move_to(stat.cpu);
            thread.stop_requested = self.tracer.interrupt(tid).is_ok();
        }
    }

    /// Handles all threads that have stopped or ended.
    pub(in crate::source::ptrace) fn attend(&mut self) {
        while let Some(stopped) = self.tracer.next() {
            self.handle_stop(stopped);
        }
    }

    fn handle_stop(&mut self, Stopped { tid, why }: Stopped) {
        if why != Why::Interrupted
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            // In the kernel, any stop replaces the requested one.
            thread.stop_requested = false;
        }
        match why {
            Why::Interrupted => self.interrupted(tid),
            Why::GroupStop => self.tracer.leave_stopped(tid),
            Why::Signal(signal) => self.tracer.resume(tid, signal),
            Why::Made(child) => {
                if !self.threads.contains_key(&child) {
                    self.adopt(child, Some(tid));
                }
                self.tracer.resume(tid, 0);
            }
            Why::Exec { former } => {
                self.exec(former, tid);
                self.tracer.resume(tid, 0);
            }
            Why::Exiting => {
                self.apply(tid);
                self.remove(tid);
                self.tracer.resume(tid, 0);
            }
            Why::Gone => self.remove(tid),
        }
    }

    fn interrupted(&mut self, tid: Tid) {
        let thread = self.threads.get_mut(&tid);
        let known = thread.map(|thread| std::mem::take(&mut thread.stop_requested));
        match known {
            Some(true) => return self.sample(tid),
            Some(false) => {}
            // It is new, and stopped before its parent did.
            None => self.adopt(tid, None),
        }
        self.tracer.resume(tid, 0);
    }

    /// Reads the thread's state, resumes it, then builds the record.
    fn sample(&mut self, tid: Tid) {
        let registers = self.tracer.registers(tid);
        let pid = self.threads.get(&tid).map_or(tid, |thread| thread.pid);
        let time = Task::thread(pid, tid).cpu_time();
        self.stack.clear();
        if let (Ok(registers), Some(memory)) = (&registers, LiveMemory::of(pid, tid)) {
            let read = memory.append(registers.sp, self.dump, &mut self.stack);
            if read.is_ok_and(|read| read < self.dump) {
                // The stack ends here: an odd length prevents further reading.
                self.stack.pop();
            }
            if let Some(frames) = &mut self.frames {
                let copy = (registers.sp, self.stack.as_slice());
                frames.follow(registers.ip, registers.user.as_ref(), copy, memory);
            }
        }
        let user = registers.as_ref().ok().and_then(|it| it.user);
        let interpreted = (self.builder).interpreted((pid, tid), user, &self.stack, self.dump);
        self.tracer.resume(tid, 0);
        let (Ok(registers), Some(time)) = (registers, time) else {
            return;
        };
        self.refresh_mappings(pid);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let weight = thread.weigh(time, &mut self.unattributed, self.most);
        self.builder.sampled(ThreadSample {
            pid,
            tid,
            cpu: thread.cpu,
            ip: registers.ip,
            weight,
            registers: registers.user,
            chain: self.frames.as_ref().map_or(&[], FramePointers::chain),
            stack: &self.stack,
            interpreted,
        });
    }

    /// Reports new mappings. No record of the kernel does.
    fn refresh_mappings(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if let Ok(stat) = Task::of(pid).stat()
            && (stat.size, stat.faults) != process.memory
        {
            process.memory = (stat.size, stat.faults);
            self.builder.mapped(pid, &mut process.mapped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsampled_time_is_not_added_to_a_sample() {
        let (mut thread, mut unattributed) = (TracedThread::default(), 30);
        let mut check = |time, expected| {
            assert_eq!(
                thread.weigh(time, &mut unattributed, 50),
                expected,
                "{time}"
            );
        };
        // The first sample represents threads that ended unseen, too.
        check(10, 40);
        check(22, 12);
        check(938, 50);
        check(940, 2);
        check(940, 1);
    }
}
