//! Which interpreters there are, and what was read of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use prof_model::{Pid, Tid};
use prof_perfdata::Sample;
use prof_runtimes::python::Interpreter;

use crate::queue::message::PythonReading;

/// The interpreters that the session has found, and what was read of them for the samples that
/// wait in the rings. All threads of the recorder share it.
#[derive(Debug, Default)]
pub(crate) struct PythonReadings {
    interpreters: RwLock<HashMap<Pid, Arc<Interpreter>>>,
    /// By the thread and the time of the sample.
    readings: Mutex<Waiting>,
}

/// Readings that wait for their samples to be drained.
#[derive(Debug, Default)]
struct Waiting {
    by_sample: HashMap<(Tid, u64), PythonReading>,
    /// Of memory that they take.
    bytes: usize,
}

impl PythonReadings {
    /// Bytes of readings that wait, at most: 100,000 of 30 frames.
    const WAITING: usize = 64 << 20;
    /// From so many bytes on, their samples are to be drained at once.
    const MANY: usize = Self::WAITING / 8;

    /// The process runs this interpreter, or none.
    pub(crate) fn learn(&self, pid: Pid, interpreter: Option<Arc<Interpreter>>) {
        let interpreters = self.interpreters.write();
        let mut interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        match interpreter {
            Some(interpreter) => interpreters.insert(pid, interpreter),
            None => interpreters.remove(&pid),
        };
    }

    /// Whether a process runs an interpreter.
    pub(crate) fn are_wanted(&self) -> bool {
        let interpreters = self.interpreters.read();
        let interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        !interpreters.is_empty()
    }

    pub(super) fn interpreter(&self, pid: Pid) -> Option<Arc<Interpreter>> {
        let interpreters = self.interpreters.read();
        let interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        interpreters.get(&pid).cloned()
    }

    /// What was read for the sample of a thread at this time.
    pub(crate) fn take(&self, sample: &Sample<'_>) -> Option<PythonReading> {
        let mut waiting = self.lock();
        let reading = waiting.by_sample.remove(&(sample.tid, sample.time?))?;
        waiting.bytes -= reading.footprint();
        Some(reading)
    }

    /// Returns whether the samples of those that wait are to be drained at once.
    pub(super) fn leave(&self, sample: (Tid, u64), reading: PythonReading) -> bool {
        let mut waiting = self.lock();
        if waiting.bytes > Self::WAITING {
            *waiting = Waiting::default();
        }
        waiting.bytes += reading.footprint();
        if let Some(before) = waiting.by_sample.insert(sample, reading) {
            waiting.bytes -= before.footprint();
        }
        waiting.bytes > Self::MANY
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        let readings = self.readings.lock();
        readings.unwrap_or_else(PoisonError::into_inner)
    }
}
