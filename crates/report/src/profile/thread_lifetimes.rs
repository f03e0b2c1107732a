//! When threads began and ended.

use prof_model::{Pid, Tid};
use rustc_hash::FxHashMap;

/// The life of one thread; ids come again, so there may be several of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLifetime {
    /// Its process.
    pub pid: Pid,
    /// The thread; the process's first one has the process's number.
    pub tid: Tid,
    /// When it began, in nanoseconds on the recording's clock; `None` if before the recording.
    pub start: Option<u64>,
    /// When it ended; `None` if after the recording.
    pub end: Option<u64>,
}

/// The lifetimes of all threads, as far as they are recorded.
#[derive(Clone, Debug, Default)]
pub struct ThreadLifetimes {
    thread_lifetimes: Vec<ThreadLifetime>,
    /// Those that have not ended.
    open: FxHashMap<(Pid, Tid), usize>,
}

impl ThreadLifetimes {
    /// A thread begins.
    pub fn begin(&mut self, pid: Pid, tid: Tid, time: u64) {
        self.open.insert((pid, tid), self.thread_lifetimes.len());
        self.thread_lifetimes.push(ThreadLifetime {
            pid,
            tid,
            start: Some(time),
            end: None,
        });
    }

    /// A thread ends.
    pub fn end(&mut self, pid: Pid, tid: Tid, time: u64) {
        match self.open.remove(&(pid, tid)) {
            Some(index) => self.thread_lifetimes[index].end = Some(time),
            None => self.thread_lifetimes.push(ThreadLifetime {
                pid,
                tid,
                start: None,
                end: Some(time),
            }),
        }
    }

    /// The lifetimes of each thread, in the order of their records.
    pub fn by_thread(&self) -> FxHashMap<(Pid, Tid), Vec<ThreadLifetime>> {
        let mut threads: FxHashMap<_, Vec<ThreadLifetime>> = FxHashMap::default();
        for life in &self.thread_lifetimes {
            threads.entry((life.pid, life.tid)).or_default().push(*life);
        }
        threads
    }

    /// Moves all to earlier times, by this many nanoseconds.
    pub(super) fn move_back(&mut self, by: u64) {
        for life in &mut self.thread_lifetimes {
            for time in life.start.iter_mut().chain(&mut life.end) {
                *time = time.saturating_sub(by);
            }
        }
    }

    /// Adds those of another recording.
    pub(super) fn append(&mut self, other: Self) {
        self.open.clear();
        self.thread_lifetimes.extend(other.thread_lifetimes);
    }
}
