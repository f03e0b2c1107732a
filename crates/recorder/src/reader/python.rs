//! The Python frames of a sample, read from the live target at once.
//!
//! The target runs on meanwhile. What was read is believed only if the target's native stack is, up
//! to the innermost evaluation loop and after the reading, as it was copied with the sample, and if
//! the sample's registers or this part of its stack point into the instructions of the innermost
//! Python function: the evaluation loop needs that pointer whenever it goes on.

use std::collections::HashMap;
use std::sync::Arc;

use prof_events::LiveMemory;
use prof_model::{NoPython, Pid, Tid, UserRegisters};
use prof_perfdata::Record;
use prof_runtimes::Memory;
use prof_runtimes::python::{Functions, Interpreter, PythonFrame, PythonStack, Unknown};

use crate::queue::message::{PythonReading, SampledThread};

/// Reads the frames of interpreters that the session has found.
#[derive(Debug, Default)]
pub(crate) struct PythonReader {
    programs: HashMap<Pid, Program>,
}

#[derive(Debug)]
struct Program {
    interpreter: Arc<Interpreter>,
    functions: Functions,
    /// Where the states of threads were.
    threads: HashMap<Tid, u64>,
}

/// The memory of a process as it is now.
pub(crate) struct Now(pub(crate) LiveMemory);

impl Memory for Now {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.read(address, buffer).unwrap_or(0)
    }
}

impl PythonReader {
    /// Threads of a process to remember before starting over.
    const THREADS: usize = 4096;

    /// These processes run these interpreters.
    pub(crate) fn learn(&mut self, found: Vec<(Pid, Arc<Interpreter>)>) {
        for (pid, interpreter) in found {
            let program = Program {
                interpreter,
                functions: Functions::default(),
                threads: HashMap::new(),
            };
            self.programs.insert(pid, program);
        }
    }

    /// Forgets programs that have ended.
    pub(crate) fn notice(&mut self, record: &Record<'_>) {
        match record {
            Record::Comm(comm) if comm.exec => self.programs.remove(&comm.pid),
            Record::Exit(task) if task.pid == task.tid => self.programs.remove(&task.pid),
            _ => None,
        };
    }

    /// What the thread runs; `None` if its process is not known to run Python.
    pub(crate) fn read(
        &mut self,
        thread: &SampledThread<'_>,
        is_prompt: bool,
    ) -> Option<PythonReading> {
        let program = self.programs.get_mut(&thread.pid)?;
        let memory = Now(LiveMemory::of(thread.pid)?);
        let mut stack = program.stack(thread, memory);
        if let Ok(stack) = &mut stack {
            let ip = thread.registers.instruction_pointer();
            let in_loop = ip.is_some_and(|ip| program.interpreter.evaluates_at(ip));
            // The loop may have gone on to another instruction without any trace.
            if let (true, false, Some(first)) = (in_loop, is_prompt, stack.frames.first_mut()) {
                first.line = None;
            }
        }
        Some(PythonReading { stack })
    }
}

impl Program {
    /// Beyond its anchor, the loop's own frame goes on for a while.
    const BEYOND_ANCHOR: usize = 512;

    fn stack(
        &mut self,
        sampled: &SampledThread<'_>,
        mut memory: Now,
    ) -> Result<PythonStack, NoPython> {
        let known = self.threads.get(&sampled.tid).copied();
        let thread = (self.interpreter)
            .thread_state(&mut memory, sampled.tid as u64, known)
            .ok_or(NoPython::NoThread)?;
        if self.threads.len() >= PythonReader::THREADS {
            self.threads.clear();
        }
        self.threads.insert(sampled.tid, thread);
        let stack = (self.interpreter)
            .stack(&mut memory, thread, &mut self.functions)
            .map_err(|unknown| match unknown {
                Unknown::Version => NoPython::UnknownVersion,
                Unknown::NoThread => NoPython::NoThread,
                Unknown::Inconsistent => NoPython::Inconsistent,
                Unknown::TooDeep => NoPython::TooDeep,
            })?;
        let (Some(activation), Some(frame)) = (stack.activations.first(), stack.frames.first())
        else {
            return Ok(stack);
        };
        let start = sampled.registers.stack_pointer();
        let start = start.ok_or(NoPython::Changed)?;
        let inner = up_to_loop(sampled.stack, start, activation.anchor);
        let inner = inner.ok_or(NoPython::Changed)?;
        let mut now = vec![0; inner.len()];
        let count = memory.read(start, &mut now);
        let is_same = count == inner.len() && now == inner;
        match is_same && points_into(frame, &sampled.registers, inner) {
            true => Ok(stack),
            false => Err(NoPython::Changed),
        }
    }
}

/// The copy of the stack, which begins at `start`, up to the innermost evaluation loop.
fn up_to_loop(copy: &[u8], start: u64, anchor: u64) -> Option<&[u8]> {
    let at = usize::try_from(anchor.checked_sub(start)?).ok();
    let at = at.filter(|&at| at < copy.len())?;
    let end = at.saturating_add(Program::BEYOND_ANCHOR);
    copy.get(..end.min(copy.len()))
}

/// Whether a register or a word of the stack points into the instructions of the frame.
fn points_into(frame: &PythonFrame, registers: &UserRegisters, stack: &[u8]) -> bool {
    let (start, end) = frame.instructions;
    let is_in = |value: u64| (start..=end).contains(&value);
    let mut values = (0..32).filter_map(|number| registers.get(number));
    let mut words = stack.chunks_exact(8).map(|word| {
        let word = word.first_chunk().copied();
        word.map_or(0, u64::from_le_bytes)
    });
    values.any(is_in) || words.any(is_in)
}
