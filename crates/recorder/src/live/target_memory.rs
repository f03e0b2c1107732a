//! The memory and the files of targets, read so that the reading thread does not hang.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use prof_events::LiveMemory;
use prof_events::tracing::Errno;
use prof_model::{Pid, Tid};
use prof_procfs::{Maps, Task};

use crate::live::job_thread::JobThread;
use crate::live::readings::LiveReadings;

/// Who reads targets.
#[derive(Clone, Debug)]
pub(crate) enum Reads {
    /// The caller itself: it may hang.
    Directly,
    /// Threads that are left behind if they hang.
    Delegated(Arc<ReadingThreads>),
}

/// The threads that read in the place of one that must not hang.
#[derive(Debug)]
pub(crate) struct ReadingThreads {
    memory: JobThread,
    files: JobThread,
    readings: Arc<LiveReadings>,
}

/// The memory of a process.
#[derive(Clone, Debug)]
pub(crate) struct TargetMemory {
    live: LiveMemory,
    pid: Pid,
    reads: Reads,
}

/// How long memory that answers may take: a page may have to come from a disk.
pub(crate) const MEMORY_TIME_OUT: Duration = Duration::from_millis(200);
/// How long files may take: all of their tables may have to.
const FILE_TIME_OUT: Duration = Duration::from_secs(1);

impl Reads {
    /// By threads of their own.
    pub(crate) fn delegated(readings: &Arc<LiveReadings>) -> Self {
        Self::Delegated(Arc::new(ReadingThreads {
            memory: JobThread::new(true),
            files: JobThread::new(false),
            readings: Arc::clone(readings),
        }))
    }

    /// What a job reads of the memory of a process, or in /proc of that; `None` if it does not
    /// answer.
    pub(crate) fn memory<T: Send + 'static>(
        &self,
        pid: Pid,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Self::Directly => Some(job()),
            Self::Delegated(threads) => {
                let silent = threads.readings.silent();
                silent.unless(pid, || threads.memory.run(MEMORY_TIME_OUT, job))
            }
        }
    }

    /// What a job reads of files that a process uses; `None` if they do not answer.
    pub(crate) fn files<T: Send + 'static>(
        &self,
        pid: Pid,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Self::Directly => Some(job()),
            Self::Delegated(threads) => {
                let silent = threads.readings.silent_files();
                silent.unless(pid, || threads.files.run(FILE_TIME_OUT, job))
            }
        }
    }

    /// The mappings of a process.
    pub(crate) fn maps(&self, pid: Pid) -> Option<Maps> {
        self.memory(pid, move || Task::of(pid).maps().ok())?
    }
}

impl TargetMemory {
    /// As [`LiveMemory::of`].
    pub(crate) fn of(pid: Pid, tid: Tid, reads: &Reads) -> Option<Self> {
        let live = LiveMemory::of(pid, tid)?;
        let reads = reads.clone();
        Some(Self { live, pid, reads })
    }

    /// As [`LiveMemory::read`]; ETIMEDOUT if the process does not answer.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        match &self.reads {
            Reads::Directly => self.live.read(address, buffer),
            Reads::Delegated(_) => {
                let (live, length) = (self.live, buffer.len());
                let read = move |out: &mut Vec<u8>| live.append(address, length, out);
                self.delegated_read(read, buffer)
            }
        }
    }

    /// As [`LiveMemory::read_ranges`]; ETIMEDOUT if the process does not answer.
    pub(crate) fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        match &self.reads {
            Reads::Directly => self.live.read_ranges(ranges, buffer),
            Reads::Delegated(_) => {
                let (live, ranges, length) = (self.live, ranges.to_vec(), buffer.len());
                let read = move |out: &mut Vec<u8>| {
                    out.resize(length, 0);
                    live.read_ranges(&ranges, out)
                };
                self.delegated_read(read, buffer)
            }
        }
    }

    /// As [`LiveMemory::append`]; ETIMEDOUT if the process does not answer.
    pub(crate) fn append(
        &self,
        address: u64,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Errno> {
        match &self.reads {
            Reads::Directly => self.live.append(address, length, out),
            Reads::Delegated(_) => {
                let live = self.live;
                let (count, bytes) =
                    self.bytes(move |out: &mut Vec<u8>| live.append(address, length, out))?;
                let bytes = bytes.get(..count).unwrap_or_default();
                out.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn delegated_read(
        &self,
        read: impl FnOnce(&mut Vec<u8>) -> Result<usize, Errno> + Send + 'static,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let (count, bytes) = self.bytes(read)?;
        let count = count.min(bytes.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn bytes(
        &self,
        read: impl FnOnce(&mut Vec<u8>) -> Result<usize, Errno> + Send + 'static,
    ) -> Result<(usize, Vec<u8>), Errno> {
        let job = move || {
            let mut bytes = Vec::new();
            read(&mut bytes).map(|count| (count, bytes))
        };
        let answer = self.reads.memory(self.pid, job);
        answer.unwrap_or(Err(Errno::TIMEDOUT))
    }
}
