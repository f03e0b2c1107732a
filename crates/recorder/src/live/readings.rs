//! What was read of live targets for samples that wait in the rings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use prof_model::{Account, Pid, Tid};
use prof_perfdata::Sample;
use prof_runtimes::Interpreter;

use crate::queue::message::{InterpretedReading, StackTail};

/// The interpreters that the session has found, and what was read for samples. All threads of the
/// recorder share it.
#[derive(Debug, Default)]
pub(crate) struct LiveReadings {
    interpreters: RwLock<HashMap<Pid, KnownInterpreter>>,
    /// How many of their processes have ended.
    ended: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// The interpreter of a process, and the account of what is kept of it.
pub(crate) type KnownInterpreter = (Arc<Interpreter>, Account);

/// What was read for a sample.
#[derive(Debug, Default)]
pub(crate) struct LiveReading {
    /// The interpreted functions of its thread, if its process runs an interpreter.
    pub(crate) interpreted: Option<InterpretedReading>,
    /// The tail of its stack, if its dump is full.
    pub(crate) tail: Option<(StackTail, Vec<u8>)>,
}

impl LiveReading {
    /// Bytes of memory that it uses.
    fn footprint(&self) -> usize {
        let interpreted = self
            .interpreted
            .as_ref()
            .map_or(0, InterpretedReading::footprint);
        let tail = self.tail.as_ref().map_or(0, |(_, bytes)| bytes.len());
        size_of::<Self>() + interpreted + tail
    }
}

/// Readings that wait for their samples to be drained.
#[derive(Debug, Default)]
struct Waiting {
    /// By the thread and the time of the sample.
    by_sample: HashMap<(Tid, u64), LiveReading>,
    /// Of memory that they take.
    bytes: usize,
    /// Buffers of tails that were drained: new ones would be zeroed by the kernel, page by page.
    spare: Vec<Vec<u8>>,
}

impl LiveReadings {
    /// Bytes of readings that wait, at most: 50,000 of 30 frames.
    const WAITING: usize = 32 << 20;
    /// From so many bytes on, their samples are to be drained at once.
    const MANY: usize = Self::WAITING / 8;
    /// How many buffers are kept.
    const SPARE: usize = 8;

    /// The process runs this interpreter, or none.
    pub(crate) fn learn(&self, pid: Pid, interpreter: Option<KnownInterpreter>) {
        let interpreters = self.interpreters.write();
        let mut interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        match interpreter {
            Some(interpreter) => _ = interpreters.insert(pid, interpreter),
            None if interpreters.remove(&pid).is_some() => {
                self.ended.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }

    /// How many processes with interpreters have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether any process runs an interpreter.
    pub(crate) fn has_interpreters(&self) -> bool {
        let interpreters = self.interpreters.read();
        let interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        !interpreters.is_empty()
    }

    pub(crate) fn interpreter(&self, pid: Pid) -> Option<KnownInterpreter> {
        let interpreters = self.interpreters.read();
        let interpreters = interpreters.unwrap_or_else(PoisonError::into_inner);
        interpreters.get(&pid).cloned()
    }

    /// What was read for this sample.
    pub(crate) fn take(&self, sample: &Sample<'_>) -> LiveReading {
        let mut waiting = self.lock();
        let key = sample.time.map(|time| (sample.tid, time));
        let Some(reading) = key.and_then(|key| waiting.by_sample.remove(&key)) else {
            return LiveReading::default();
        };
        waiting.bytes -= reading.footprint();
        reading
    }

    /// Stores what was read for the sample of a thread at this time. Returns whether so much waits
    /// that the rings are to be drained at once.
    pub(crate) fn leave(&self, sample: (Tid, u64), reading: LiveReading) -> bool {
        let mut waiting = self.lock();
        if waiting.bytes > Self::WAITING {
            waiting.by_sample.clear();
            waiting.bytes = 0;
        }
        waiting.bytes += reading.footprint();
        if let Some(before) = waiting.by_sample.insert(sample, reading) {
            waiting.bytes -= before.footprint();
        }
        waiting.bytes > Self::MANY
    }

    /// Forgets what was read for samples before this time, all of which have been drained: some
    /// while they were read.
    pub(crate) fn forget_before(&self, time: u64) {
        let mut waiting = self.lock();
        let Waiting {
            by_sample, bytes, ..
        } = &mut *waiting;
        by_sample.retain(|&(_, sampled), reading| {
            let waits = sampled >= time;
            if !waits {
                *bytes -= reading.footprint();
            }
            waits
        });
    }

    /// An empty buffer for the tail of a stack.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// A buffer that is needed no more.
    pub(crate) fn reuse(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut waiting = self.lock();
        if waiting.spare.len() < Self::SPARE {
            waiting.spare.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        let waiting = self.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}
