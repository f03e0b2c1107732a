//! The traced threads: followed as they come and go, stopped when they run, and sampled.

use std::collections::{HashMap, HashSet};

use prof_events::LiveMemory;
use prof_events::tracing::{Errno, Stopped, Tracer, Why};
use prof_model::{Pid, Tid};
use prof_procfs::Task;

use super::frame_pointers::FramePointers;
use super::record_builder::{RecordBuilder, ThreadSample};
use super::tracer_cpu::TracerCpu;
use crate::output::synthesize::MappingKey;

/// The state of all targets.
pub(super) struct Tracees {
    tracer: Tracer,
    pub(super) builder: RecordBuilder,
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
    pub(super) fn new(
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

    pub(super) fn all_ended(&self) -> bool {
        self.threads.is_empty()
    }

    /// Traces a command that waits to exec.
    pub(super) fn seize_held(&mut self, pid: Pid) -> Result<(), Errno> {
        self.tracer.seize(pid)?;
        self.add(pid, pid).held = true;
        Ok(())
    }

    /// Traces one thread of a running process.
    pub(super) fn seize_thread(&mut self, tid: Tid) -> Result<(), Errno> {
        let status = Task::of(tid).status();
        let pid = status.ok().and_then(|it| it.pid()).unwrap_or(tid);
        self.tracer.seize(tid)?;
        let thread = self.add(pid, tid);
        thread.accounted = Task::thread(pid, tid).cpu_time().unwrap_or(0);
        thread.before = thread.accounted;
        Ok(())
    }

    /// Traces all threads of a running process.
    pub(super) fn seize_process(&mut self, pid: Pid) -> Result<(), Errno> {
        let mut found = true;
        // Threads may appear meanwhile; those created by traced ones are traced already.
        while std::mem::take(&mut found) {
            for tid in Task::of(pid).threads().unwrap_or_default() {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match self.tracer.seize(tid) {
                    Ok(()) => {
                        let thread = self.add(pid, tid);
                        thread.accounted = Task::thread(pid, tid).cpu_time().unwrap_or(0);
                        thread.before = thread.accounted;
                        found = true;
                    }
                    // It has ended, or was created by a traced one and is traced by now.
                    Err(_) if !self.threads.is_empty() => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        let is_traced = self.processes.contains_key(&pid);
        is_traced.then_some(()).ok_or(Errno::SRCH)
    }

    /// Discards the threads' work so far: sampling was disabled.
    pub(super) fn forget_time(&mut self) {
        self.unattributed = 0;
        for (&tid, thread) in &mut self.threads {
            thread.accounted = Task::thread(thread.pid, tid)
                .cpu_time()
                .unwrap_or(thread.accounted);
        }
    }

    /// Asks all running threads to stop.
    pub(super) fn poll(&mut self) {
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
    pub(super) fn attend(&mut self) {
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

    /// A thread that a traced one has created.
    fn adopt(&mut self, tid: Tid, parent_thread: Option<Tid>) {
        let Ok(status) = Task::of(tid).status() else {
            return;
        };
        let Some((pid, parent)) = status.pid().zip(status.parent()) else {
            return;
        };
        let known = parent_thread
            .and_then(|parent_thread| Some((self.threads.get(&parent_thread)?.pid, parent_thread)));
        let is_process = pid == tid;
        let parent = known.unwrap_or(match is_process {
            true => (parent, parent),
            false => (pid, pid),
        });
        let parent_thread = self.threads.get(&parent.1);
        let (name, held) = parent_thread.map_or((Vec::new(), false), |parent_thread| {
            (parent_thread.name.clone(), parent_thread.held)
        });
        if is_process && let Some(parent_thread) = self.processes.get(&parent.0) {
            let copy = Process {
                threads: 0,
                memory: (0, 0),
                mapped: parent_thread.mapped.clone(),
            };
            self.processes.insert(pid, copy);
        }
        self.builder.forked(parent, (pid, tid));
        let thread = self.add(pid, tid);
        (thread.name, thread.held) = (name, held);
    }

    /// Another program runs in this process, in its only thread, formerly `former`.
    fn exec(&mut self, former: Tid, pid: Pid) {
        let time = Task::thread(pid, pid).cpu_time().unwrap_or(0);
        let before = self.threads.get(&former).filter(|thread| !thread.held);
        let sampled = before.is_some_and(|thread| thread.sampled);
        let begin = before.map_or(time, |thread| thread.before);
        self.unattributed += before.map_or(0, |thread| time.saturating_sub(thread.accounted));
        let gone: Vec<Tid> = (self.threads.iter())
            .filter(|(_, thread)| thread.pid == pid)
            .map(|(&tid, _)| tid)
            .collect();
        for tid in gone {
            self.forget(tid);
        }
        let stat = Task::thread(pid, pid).stat();
        let thread = self.add(pid, pid);
        // It is not a new thread, so it represents no other.
        (thread.accounted, thread.sampled) = (time, sampled);
        thread.before = begin;
        if let Ok(stat) = stat {
            thread.name.clone_from(&stat.name);
            self.builder.named(pid, pid, &stat.name, true);
        }
        self.refresh_mappings(pid);
    }

    /// The thread ends: its CPU time since its last sample must not be lost.
    fn apply(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && !thread.held
            && let Some(time) = Task::thread(thread.pid, tid).cpu_time()
        {
            self.unattributed += time.saturating_sub(thread.accounted);
            thread.accounted = time;
            let used = time.saturating_sub(thread.before);
            self.builder.counted(thread.pid, tid, used);
        }
    }

    /// Recording ends: reports the CPU time of threads that have not ended.
    pub(super) fn finish(&mut self) {
        let threads: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in threads {
            self.apply(tid);
        }
    }

    fn add(&mut self, pid: Pid, tid: Tid) -> &mut TracedThread {
        self.processes.entry(pid).or_default().threads += 1;
        self.threads.entry(tid).or_insert(TracedThread {
            pid,
            ..TracedThread::default()
        })
    }

    fn remove(&mut self, tid: Tid) {
        if let Some(pid) = self.forget(tid) {
            self.builder.ended(pid, tid);
        }
    }

    fn forget(&mut self, tid: Tid) -> Option<Pid> {
        let pid = self.threads.remove(&tid)?.pid;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
        Some(pid)
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
