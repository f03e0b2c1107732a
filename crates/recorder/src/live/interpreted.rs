//! The interpreted frames of a sample, read from the live target at once.
//!
//! The target runs on meanwhile. What was read is believed only if the target's native stack is, up
//! to the innermost evaluation loop and after the reading, as it was copied with the sample, and if
//! the sample's registers or this part of its stack point into the instructions of the innermost
//! function: PHP, Ruby and versions of CPython before 3.11 always have that pointer there, later
//! ones mostly. Of a thread that has stood still, the stack alone suffices.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use prof_events::{LiveMemory, system};
use prof_model::{MissingFrames, Pid, Tid, UserRegisters};
use prof_procfs::Task;
use prof_runtimes::{
    InterpretedStack, Interpreter, InterpreterCache, InterpreterThread, Memory, NativeStack,
    Unknown,
};
use prof_unwinder::Target;

use crate::live::last_sleep::LastSleep;
use crate::live::prefetch::Prefetch;
use crate::live::readings::LiveReadings;
use crate::queue::message::{InterpretedReading, SampledThread};

/// Reads the frames of interpreters that are known, with what one thread of the recorder remembers
/// of them.
#[derive(Debug)]
pub(crate) struct InterpreterReader {
    shared: Arc<LiveReadings>,
    programs: HashMap<Pid, Program>,
    prefetched: Vec<u8>,
    /// How many of the programs had ended when those were forgotten.
    ended: u64,
}

#[derive(Debug)]
struct Program {
    interpreter: Arc<Interpreter>,
    cache: InterpreterCache,
    threads: HashMap<Tid, ReadThread>,
    /// Until when nothing is read, by the clock of the records.
    rests_until: u64,
}

/// What is remembered of a thread of a program.
#[derive(Debug)]
struct ReadThread {
    /// Its id in its own PID namespace.
    inner: Tid,
    prefetch: Prefetch,
}

/// What a thread has done since it was sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SinceSample<'a> {
    /// It was stopped or blocked.
    Stopped,
    /// The thread that reads it took its CPU when this sleep ended, and is ahead of it there: since
    /// then, it can have run only on another CPU.
    Preempted(&'a LastSleep),
    /// It may have run.
    MayHaveRun,
}

/// The memory of a process as it is now.
pub(crate) struct Now {
    pid: Pid,
    live: LiveMemory,
    /// How often it was read.
    reads: u32,
    /// How often it may be.
    most: u32,
}

impl Now {
    /// Of a process, of which `tid` is a thread.
    pub(crate) fn of(pid: Pid, tid: Tid) -> Option<Self> {
        let live = LiveMemory::of(pid, tid)?;
        Some(Self {
            pid,
            live,
            reads: 0,
            most: u32::MAX,
        })
    }

    /// Of the process of a sample.
    pub(crate) fn of_target(target: &Target<'_>) -> Option<Self> {
        let living = target.process.threads().next();
        Self::of(target.pid, living.unwrap_or(target.pid))
    }

    /// Limits the cost of a hostile process: then nothing more can be read.
    pub(crate) fn with_limit(self, most: u32) -> Self {
        Self { most, ..self }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }
}

impl Memory for Now {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.reads = self.reads.saturating_add(1);
        match self.reads <= self.most {
            true => self.live.read(address, buffer).unwrap_or(0),
            false => 0,
        }
    }

    fn read_ranges(&mut self, ranges: &[Range<u64>], buffer: &mut [u8]) -> usize {
        self.reads = self.reads.saturating_add(ranges.len() as u32);
        self.live.read_ranges(ranges, buffer).unwrap_or(0)
    }
}

impl InterpreterReader {
    /// Programs to remember before starting over.
    const PROGRAMS: usize = 1024;

    pub(crate) fn new(shared: Arc<LiveReadings>) -> Self {
        Self {
            shared,
            programs: HashMap::new(),
            prefetched: Vec::new(),
            ended: 0,
        }
    }

    /// Where readings are left for their samples.
    pub(crate) fn readings(&self) -> &LiveReadings {
        &self.shared
    }

    /// What the thread runs; `None` if its process is not known to run an interpreter.
    pub(crate) fn read(
        &mut self,
        thread: &SampledThread<'_>,
        since_sample: SinceSample<'_>,
    ) -> Option<InterpretedReading> {
        self.forget_ended();
        let (interpreter, account) = self.shared.interpreter(thread.pid)?;
        let known = self.programs.get(&thread.pid);
        if !known.is_some_and(|known| Arc::ptr_eq(&known.interpreter, &interpreter)) {
            if self.programs.len() >= Self::PROGRAMS {
                self.programs.clear();
            }
            let program = Program {
                interpreter,
                cache: InterpreterCache::new(&account),
                threads: HashMap::new(),
                rests_until: 0,
            };
            self.programs.insert(thread.pid, program);
        }
        let program = self.programs.get_mut(&thread.pid)?;
        if system::monotonic_now() < program.rests_until {
            let stack = Err(MissingFrames::NotRead);
            return Some(InterpretedReading { stack });
        }
        let mut memory = Now::of(thread.pid, thread.tid)?;
        let buffer = &mut self.prefetched;
        let mut stack = program.stack(thread, &mut memory, buffer, since_sample);
        program.rest(memory.reads);
        if let Ok(stack) = &mut stack {
            let ip = thread.registers.instruction_pointer();
            let in_loop = ip.is_some_and(|ip| program.interpreter.evaluates_at(ip));
            // The loop may have gone on to another instruction without any trace.
            if in_loop
                && matches!(since_sample, SinceSample::MayHaveRun)
                && let Some(first) = stack.frames.first_mut()
            {
                first.line = None;
            }
        }
        Some(InterpretedReading { stack })
    }

    /// Forgets programs that have ended: others get what was kept of them.
    fn forget_ended(&mut self) {
        let ended = self.shared.ended();
        if std::mem::replace(&mut self.ended, ended) != ended {
            (self.programs).retain(|&pid, _| self.shared.interpreter(pid).is_some());
        }
    }
}

impl Program {
    /// Threads to remember before starting over.
    const THREADS: usize = 1024;
    /// So many reads take a millisecond, which is not noticeable.
    const MANY_READS: u32 = 1_000;
    /// How long to rest after more, for each read, in nanoseconds: ten times as long as it takes.
    const REST: u64 = 10_000;
    /// Beyond its anchor, the loop's own frame goes on for a while.
    const BEYOND_ANCHOR: usize = 512;
    /// Bytes of a stack up to its innermost loop that are read, at most.
    const FARTHEST: usize = 256 << 10;

    /// After a long reading, the program and others have their turn.
    fn rest(&mut self, reads: u32) {
        if reads > Self::MANY_READS {
            self.rests_until = system::monotonic_now() + u64::from(reads) * Self::REST;
        }
    }

    fn stack(
        &mut self,
        sampled: &SampledThread<'_>,
        memory: &mut Now,
        buffer: &mut Vec<u8>,
        since_sample: SinceSample<'_>,
    ) -> Result<InterpretedStack, MissingFrames> {
        let start = sampled.registers.stack_pointer();
        let start = start.ok_or(MissingFrames::Changed)?;
        let registers: Vec<_> = registers(&sampled.registers).collect();
        let native = NativeStack {
            start,
            bytes: sampled.stack,
            is_whole: !sampled.is_full,
            registers: &registers,
            instruction_pointer: sampled.registers.instruction_pointer(),
        };
        if self.threads.len() >= Self::THREADS {
            self.threads.clear();
        }
        let new = || ReadThread::of(sampled.pid, sampled.tid);
        let known = self.threads.entry(sampled.tid).or_insert_with(new);
        let thread = InterpreterThread {
            tid: known.inner as u64,
            is_main: sampled.tid == sampled.pid,
        };
        let mut prefetched = known.prefetch.read(memory, buffer);
        let stack = (self.interpreter).stack(&mut prefetched, thread, &native, &mut self.cache);
        prefetched.finish();
        if let Err(Unknown::NoThread) = stack {
            // Another thread may have got its id.
            self.threads.remove(&sampled.tid);
        }
        let stack = stack.map_err(|unknown| match unknown {
            Unknown::Version => MissingFrames::UnknownVersion,
            Unknown::NoThread => MissingFrames::NoThread,
            Unknown::Inconsistent => MissingFrames::Inconsistent,
            Unknown::TooDeep => MissingFrames::TooDeep,
            Unknown::TooManyNew => MissingFrames::TooManyNew,
        })?;
        let Some(activation) = stack.activations.first() else {
            return Ok(stack);
        };
        let copy = &native;
        let inner = up_to_loop(copy, activation.anchor, since_sample, memory)?;
        // What was not copied was not compared.
        let is_compared = inner.len() <= native.bytes.len();
        let has_stood = || match since_sample {
            SinceSample::Stopped => true,
            SinceSample::Preempted(sleep) => sleep.still_preempts(sampled.pid, sampled.tid),
            SinceSample::MayHaveRun => false,
        };
        // A function that has just returned has left nothing that points into its caller.
        let points = points_into(&stack.instructions, &registers, &inner);
        match points && is_compared || has_stood() {
            true => Ok(stack),
            false => Err(MissingFrames::Uncertain),
        }
    }
}

impl ReadThread {
    fn of(pid: Pid, tid: Tid) -> Self {
        let status = Task::thread(pid, tid).status().ok();
        Self {
            inner: status.and_then(|it| it.inner_pid()).unwrap_or(tid),
            prefetch: Prefetch::default(),
        }
    }
}

/// The stack as it is now, up to the innermost evaluation loop; as far as it was copied, it is as
/// it was.
fn up_to_loop(
    copy: &NativeStack<'_>,
    anchor: u64,
    since_sample: SinceSample<'_>,
    memory: &mut Now,
) -> Result<Vec<u8>, MissingFrames> {
    let distance = anchor
        .checked_sub(copy.start)
        .ok_or(MissingFrames::Changed)?;
    let distance = usize::try_from(distance).map_err(|_| MissingFrames::Changed)?;
    let end = distance.saturating_add(Program::BEYOND_ANCHOR);
    let end = match distance < copy.bytes.len() {
        true => end.min(copy.bytes.len()),
        false if copy.is_whole => return Err(MissingFrames::Changed),
        // What is not copied cannot be compared.
        false if matches!(since_sample, SinceSample::MayHaveRun) || end > Program::FARTHEST => {
            return Err(MissingFrames::BeyondCopy);
        }
        false => end,
    };
    let copied = &copy.bytes[..end.min(copy.bytes.len())];
    let mut now = vec![0; end];
    let count = memory.read(copy.start, &mut now);
    now.truncate(count);
    match now.starts_with(copied) && now.len() > distance {
        true => Ok(now),
        false => Err(MissingFrames::Changed),
    }
}

/// Whether a register or a word of the stack points into these instructions, or behind them.
fn points_into(instructions: &Range<u64>, registers: &[u64], stack: &[u8]) -> bool {
    let is_in = |value: u64| (instructions.start..=instructions.end).contains(&value);
    let (words, _) = stack.as_chunks::<8>();
    let mut words = words.iter().map(|&word| u64::from_le_bytes(word));
    registers.iter().any(|&value| is_in(value)) || words.any(is_in)
}

fn registers(registers: &UserRegisters) -> impl Iterator<Item = u64> {
    (0..32).filter_map(|number| registers.get(number))
}
