//! Samples blocked threads by reading their stacks.
//!
//! The kernel does not show plain users where threads leave their CPUs, only when (SWITCH records).
//! So the reader reads a thread while it is blocked: /proc has its stack and instruction pointers,
//! and its stack can be read. Only its next SWITCH record shows whether it was blocked until the
//! end of that:
//!
//! ```text
//!   SWITCH out ─────── read: a sample like one from a ring ───────────── SWITCH in
//!   `since`            stored with `since`, which identifies the wait
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use prof_events::{LiveMemory, Opened, OpenedEvent, Stacks, Weight, system};
use prof_model::{Pid, RegisterAbi, Tid, UserRegisters};
use prof_perfdata::{Attr, CpuMode, Record, Switch, encode};
use prof_procfs::{Task, ThreadState};

use crate::queue::batch::Batch;
use crate::queue::message::{
    Content, InterpretedReading, Message, MessageKind, SampledThread, StackCopy, StackTail,
};

/// How to read a live thread besides the first bytes of its stack.
pub(crate) struct LiveReads<'a> {
    /// Appends the tail of its stack.
    pub(crate) tail: &'a mut dyn FnMut(&StackCopy, &mut Vec<u8>) -> Option<StackTail>,
    /// Reads its interpreted functions, if it runs any.
    pub(crate) interpreted: &'a mut dyn FnMut(&SampledThread<'_>) -> Option<InterpretedReading>,
}

/// Samples blocked threads.
#[derive(Debug)]
pub(crate) struct BlockedThreadSampler {
    attr: Attr,
    registers: u64,
    /// Whether every wait is sampled here, because the kernel reports none.
    all: bool,
    /// Whether sampling is enabled.
    on: bool,
    threads: HashMap<Tid, BlockedThread>,
    /// Blocked threads that were not sampled yet.
    unseen: Vec<Tid>,
    /// The number of open files.
    files: usize,
    stack: Vec<u8>,
}

#[derive(Debug)]
struct BlockedThread {
    pid: Pid,
    cpu: u32,
    /// The time of its latest known switch.
    switched: u64,
    /// When it was blocked; `None` if it runs.
    since: Option<u64>,
    /// Its open /proc file with registers.
    file: Option<File>,
}

/// A thread leaves its CPU or returns to one.
#[derive(Clone, Copy, Debug)]
struct ThreadSwitch {
    pid: Pid,
    tid: Tid,
    /// In nanoseconds.
    time: u64,
    cpu: u32,
    /// Whether it leaves its CPU by itself, not preempted.
    blocks: bool,
}

impl ThreadSwitch {
    fn of(switch: &Switch) -> Option<Self> {
        Some(Self {
            pid: switch.stamp.pid?,
            tid: switch.stamp.tid?,
            time: switch.stamp.time?,
            cpu: switch.stamp.cpu?,
            blocks: switch.out && !switch.preempted,
        })
    }
}

impl BlockedThreadSampler {
    /// The event id of their samples; the kernel counts its ids from 1.
    pub(crate) const ID: u64 = u64::MAX;
    /// Bytes of the stack that are copied at first; the tail is read if the stack is longer.
    const COPIED: usize = 4096;
    /// The most files to keep open, one per thread.
    const FILES: usize = 512;

    /// Adds the event of their samples to the opened ones if needed: if waits are sampled, but not
    /// by the kernel, or began before the kernel sampled them (`attached`).
    pub(crate) fn new(opened: &mut Opened, attached: bool) -> Option<Self> {
        let waits = |event: &&OpenedEvent| event.setup.weight == Weight::OffCpu;
        let event = opened.events.iter().find(waits)?;
        let all = event.setup.only_switches();
        let unwound = matches!(event.setup.stacks, Stacks::Dump(_));
        if !unwound || !(all || attached) {
            return None;
        }
        let setup = event.setup.of_blocked_threads(Self::COPIED as u32);
        let blocked_threads = Self {
            attr: Attr::parse(&setup.attr_bytes()).ok()?,
            registers: setup.user_registers(),
            all,
            on: true,
            threads: HashMap::new(),
            unseen: Vec::new(),
            files: 0,
            stack: Vec::new(),
        };
        opened.events.push(OpenedEvent {
            setup,
            leader: None,
            ids: vec![(Self::ID, 0)],
        });
        Some(blocked_threads)
    }

    /// Whether the reader should wake as soon as a thread blocks.
    pub(crate) fn are_urgent(&self) -> bool {
        self.all
    }

    /// Sampling of these threads has just begun. Threads that are blocked already count as blocked
    /// from now on: adds records that say so.
    pub(crate) fn begin(&mut self, threads: &[(Pid, Tid)], batch: &mut Batch) {
        for &(pid, tid) in threads {
            let now = system::monotonic_now();
            if is_asleep(pid, tid) {
                let what = MessageKind::Blocked(pid, tid);
                batch.push_message(Message { time: now, what });
                self.switched(&ThreadSwitch {
                    pid,
                    tid,
                    time: now,
                    cpu: 0,
                    blocks: true,
                });
            }
        }
    }

    /// Sampling is enabled or disabled: threads that are blocked when it is enabled are sampled
    /// then.
    pub(crate) fn set_enabled(&mut self, on: bool) {
        self.on = on;
    }

    /// Handles a record from a ring.
    pub(crate) fn notice(&mut self, record: &Record<'_>) {
        match record {
            Record::Exit(task) => self.forget(task.tid),
            Record::Switch(switch) => match ThreadSwitch::of(switch) {
                Some(switch) if self.all => self.switched(&switch),
                // The kernel samples its next wait.
                Some(switch) => self.forget(switch.tid),
                None => {}
            },
            _ => {}
        }
    }

    fn switched(&mut self, switch: &ThreadSwitch) {
        let thread =
            (self.threads.entry(switch.tid)).or_insert_with(|| BlockedThread::new(switch.pid));
        if thread.switched(switch) {
            self.unseen.push(switch.tid);
        }
    }

    fn sleeps(&self, tid: Tid) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.since.is_some())
    }

    fn forget(&mut self, tid: Tid) {
        let thread = self.threads.remove(&tid);
        self.files -= usize::from(thread.is_some_and(|thread| thread.file.is_some()));
    }

    /// Reads the threads that were not sampled since they blocked, and adds their samples. Returns
    /// whether there are any.
    pub(crate) fn sample(&mut self, read: &mut LiveReads<'_>, batch: &mut Batch) -> bool {
        let mut unseen = std::mem::take(&mut self.unseen);
        let any = !unseen.is_empty();
        unseen.sort_unstable();
        unseen.dedup();
        // A thread that is about to block is tried again in the next pass.
        unseen.retain(|&tid| match self.on {
            true => self.sample_thread(tid, read, batch) == Some(ThreadState::Running),
            false => self.sleeps(tid),
        });
        self.unseen = unseen;
        any
    }

    fn sample_thread(
        &mut self,
        tid: Tid,
        read: &mut LiveReads<'_>,
        batch: &mut Batch,
    ) -> Option<ThreadState> {
        let thread = self.threads.get_mut(&tid)?;
        let (pid, cpu, since) = (thread.pid, thread.cpu, thread.since?);
        let may_keep = self.files < Self::FILES;
        let had_file = thread.file.is_some();
        let state = thread.state(tid, may_keep)?;
        self.files += usize::from(thread.file.is_some() && !had_file);
        let ThreadState::Sleeping { stack, instruction } = state else {
            return Some(state);
        };
        self.stack.clear();
        let copied = LiveMemory::of(pid, tid)?
            .append(stack, Self::COPIED, &mut self.stack)
            .ok()?;
        let values = [stack, instruction];
        let values = UserRegisters::new(RegisterAbi::Bits64, self.registers, values);
        let reading = values.and_then(|registers| {
            let thread = SampledThread {
                pid,
                tid,
                registers,
                stack: &self.stack,
                is_full: copied == Self::COPIED,
            };
            (read.interpreted)(&thread)
        });
        let sample = encode::NewSample {
            mode: CpuMode::User,
            ip: instruction,
            pid,
            tid,
            // After everything has been read: if the thread woke before that, this is too late.
            time: system::monotonic_now(),
            id: Self::ID,
            cpu,
            user_registers: values,
            user_stack: &self.stack,
            ..encode::NewSample::default()
        };
        let attr = &self.attr;
        // It fits: the copied part is small.
        batch.push_as(Content::BlockedSample { since }, |bytes| {
            let _ = encode::sample(bytes, attr, &sample);
        });
        if let Some(reading) = reading {
            batch.push_interpreted(reading);
        }
        if copied == Self::COPIED {
            let copy = StackCopy {
                pid,
                tid,
                start: stack,
                length: copied,
            };
            batch.push_tail(|bytes| (read.tail)(&copy, bytes));
        }
        Some(state)
    }
}

impl BlockedThread {
    fn new(pid: Pid) -> Self {
        Self {
            pid,
            cpu: 0,
            switched: 0,
            since: None,
            file: None,
        }
    }

    /// The thread leaves its CPU or returns. Returns whether it is blocked since then. A thread
    /// that moves between CPUs has records in the rings of both, which are read one after the
    /// other: records older than the latest known one are ignored.
    fn switched(&mut self, switch: &ThreadSwitch) -> bool {
        if switch.time < self.switched {
            return false;
        }
        (self.cpu, self.switched) = (switch.cpu, switch.time);
        self.since = switch.blocks.then_some(switch.time);
        switch.blocks
    }

    /// Where the thread is; `None` if that is unknown.
    fn state(&mut self, tid: Tid, may_keep: bool) -> Option<ThreadState> {
        let mut buffer = [0; 256];
        let opened = match self.file.take() {
            Some(file) => file,
            None => Task::thread(self.pid, tid).open("syscall").ok()?,
        };
        let length = opened.read_at(&mut buffer, 0).ok()?;
        self.file = may_keep.then_some(opened);
        ThreadState::parse(buffer.get(..length)?)
    }
}

/// Whether a thread waits for something other than a CPU.
fn is_asleep(pid: Pid, tid: Tid) -> bool {
    let stat = Task::thread(pid, tid).stat();
    stat.is_ok_and(|stat| stat.state.is_blocked())
}

#[cfg(test)]
mod tests {
    use prof_perfdata::Stamp;

    use super::*;

    #[test]
    fn threads_sleep_since_they_left_their_latest_cpu() {
        let mut blocked = BlockedThread::new(7);
        let mut check = |time: u64, (out, preempted): (bool, bool), expected: Option<u64>| {
            let stamp = Stamp {
                pid: Some(7),
                tid: Some(8),
                time: Some(time),
                cpu: Some(0),
                ..Stamp::default()
            };
            let switch = ThreadSwitch::of(&Switch {
                stamp,
                out,
                preempted,
                other: None,
            });
            let switch = switch.expect("a whole stamp");
            let slept = blocked.since;
            let sleeps = blocked.switched(&switch);
            assert_eq!(blocked.since, expected, "{switch:?}");
            assert_eq!(sleeps, expected.is_some() && expected != slept);
        };
        let (back, leaves, preempted) = ((false, false), (true, false), (true, true));
        check(100, leaves, Some(100));
        check(200, back, None);
        check(300, preempted, None);
        check(700, back, None);
        check(800, leaves, Some(800));
        // From the ring of its previous CPU.
        check(400, back, Some(800));
        check(500, leaves, Some(800));
        check(900, back, None);
    }

    #[test]
    fn a_thread_that_waits_is_asleep_and_known_where() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (sender_of_tid, tid) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_pid();
            sender_of_tid.send(own).expect("sent");
            receiver.recv()
        });
        let (pid, tid): (Pid, Tid) = (std::process::id() as Pid, tid.recv().expect("sent"));
        let mut blocked = BlockedThread::new(pid);
        // It is about to block.
        let state = loop {
            match blocked.state(tid, true) {
                Some(ThreadState::Running) => std::thread::yield_now(),
                other => break other,
            }
        };
        assert!(
            matches!(state, Some(ThreadState::Sleeping { .. })),
            "{state:?}"
        );
        assert!(is_asleep(pid, tid) && blocked.file.is_some());
        drop(sender);
        assert!(thread.join().expect("ended").is_err());
        // The kernel removes it from /proc later than it wakes who joins it.
        while is_asleep(pid, tid) {
            std::thread::yield_now();
        }
    }
}
