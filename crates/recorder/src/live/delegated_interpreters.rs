//! Interpreted frames, read by another thread in one piece.

use std::sync::Arc;

use prof_model::MissingFrames;

use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::readings::LiveReadings;
use crate::live::target_memory::Reads;
use crate::queue::message::{InterpretedReading, SampledThread};

/// Reads the frames of threads that wait, for a thread that must not hang: all of a stack with one
/// change of threads.
#[derive(Debug)]
pub(crate) struct DelegatedInterpreters {
    readings: Arc<LiveReadings>,
    reads: Reads,
    /// Gone while another thread has it.
    reader: Option<InterpreterReader>,
}

impl DelegatedInterpreters {
    pub(crate) fn new(readings: Arc<LiveReadings>, reads: Reads) -> Self {
        Self {
            readings,
            reads,
            reader: None,
        }
    }

    /// What a thread runs that waits; `None` if its process is not known to run an interpreter.
    pub(crate) fn read(&mut self, thread: &SampledThread<'_>) -> Option<InterpretedReading> {
        let &SampledThread {
            pid,
            tid,
            registers,
            stack,
            is_full,
        } = thread;
        self.readings.interpreter(pid)?;
        let own = || InterpreterReader::new(Arc::clone(&self.readings), Reads::Directly);
        let mut reader = self.reader.take().unwrap_or_else(own);
        let stack = stack.to_vec();
        let job = move || {
            let thread = SampledThread {
                pid,
                tid,
                registers,
                stack: &stack,
                is_full,
            };
            let reading = reader.read(&thread, SinceSample::Stopped);
            (reader, reading)
        };
        let Some((reader, reading)) = self.reads.memory(pid, job) else {
            let stack = Err(MissingFrames::NoAnswer);
            return Some(InterpretedReading { stack });
        };
        self.reader = Some(reader);
        reading
    }
}
