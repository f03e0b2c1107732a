//! How much of the files of processes is read, for their unwind tables and runtimes.
//!
//! Such a file may claim tables of any size, and take no space on disk. No sample is unwound while
//! one is read. So what may be read shrinks with each reading, the largest files are refused first,
//! and what is left grows again with time.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prof_model::Pid;

/// What may be read of all files together. Clones are the same budget.
#[derive(Clone, Debug)]
pub(crate) struct ReadBudget(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Bytes that may still be read.
    left: u64,
    /// When some were added last.
    added: Instant,
    /// What was read for each process.
    read: HashMap<Pid, u64>,
    refused: BTreeSet<PathBuf>,
}

impl ReadBudget {
    /// The whole budget, in bytes. The tables of Node take 16 MiB, those of the largest programs
    /// and libraries up to 30.
    const TOTAL: u64 = 4 << 30;
    /// A file may take this part of what is left.
    const FILE: u64 = 16;
    /// The files of a process may take this part of all.
    const PROCESS: u64 = 4;
    /// A millisecond of reading counts as much as so many bytes: files may be slow, and tables may
    /// be laid out to be.
    const MILLISECOND: u64 = 256 << 10;
    /// So many bytes are added each second.
    const SECOND: u64 = 64 << 20;
    /// The most files that are named.
    const NAMED: usize = 16;

    pub(crate) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
            left: Self::TOTAL,
            added: now,
            read: HashMap::new(),
            refused: BTreeSet::new(),
        })))
    }

    /// The most bytes that may be read now of a file of this process.
    pub(crate) fn most(&self, pid: Pid, now: Instant) -> u64 {
        let mut state = self.lock();
        let passed = now.saturating_duration_since(state.added);
        let more = passed.as_millis() * u128::from(Self::SECOND) / 1000;
        if more > 0 {
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            state.left = state.left.saturating_add(more).min(Self::TOTAL);
            state.added = now;
        }
        let read = state.read.get(&pid).copied().unwrap_or(0);
        let of_process = (Self::TOTAL / Self::PROCESS).saturating_sub(read);
        of_process.min(state.left / Self::FILE)
    }

    /// So many bytes of a file of this process were read.
    pub(crate) fn spend(&self, pid: Pid, bytes: u64, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let cost = bytes.saturating_add(time.saturating_mul(Self::MILLISECOND / 1000));
        let mut state = self.lock();
        state.left = state.left.saturating_sub(cost);
        let read = state.read.entry(pid).or_default();
        *read = read.saturating_add(cost);
    }

    /// A file was not read because it would take more.
    pub(crate) fn refuse(&self, path: &Path) {
        let mut state = self.lock();
        if state.refused.len() < Self::NAMED {
            state.refused.insert(path.to_owned());
        }
    }

    /// The files that were refused since the last call.
    pub(crate) fn take_refused(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.lock().refused)
    }

    /// A process has ended.
    pub(crate) fn forget(&self, pid: Pid) {
        self.lock().read.remove(&pid);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many files of this size a process may have read.
    fn files(budget: &ReadBudget, pid: Pid, size: u64, now: Instant) -> usize {
        let read = std::iter::from_fn(|| {
            (size <= budget.most(pid, now)).then(|| budget.spend(pid, size, Duration::ZERO))
        });
        read.take(1000).count()
    }

    #[test]
    fn the_largest_files_are_refused_first() {
        let now = Instant::now();
        let budget = ReadBudget::new(now);
        assert_eq!(files(&budget, 1, 500 << 20, now), 0);
        // A quarter of all, after which others are read.
        assert_eq!(files(&budget, 1, 32 << 20, now), 32);
        let mut hostile = 2..99;
        let large = hostile
            .by_ref()
            .map(|pid| files(&budget, pid, 100 << 20, now));
        assert_eq!(large.sum::<usize>(), 15);
        assert_eq!(files(&budget, 100, 30 << 20, now), 34);
        assert!(files(&budget, 101, 1 << 20, now) > 400);
        assert_eq!(files(&budget, 102, 200 << 20, now), 0);
        let later = now + Duration::from_secs(60);
        assert_eq!(files(&budget, 102, 200 << 20, later), 4);
    }

    #[test]
    fn slow_reading_counts_more() {
        let now = Instant::now();
        let budget = ReadBudget::new(now);
        assert!(budget.most(1, now) >= 200 << 20);
        budget.spend(1, 1, Duration::from_secs(5));
        assert_eq!(budget.most(1, now), 0);
        assert!(budget.most(2, now) >= 100 << 20);
        budget.forget(1);
        assert!(budget.most(1, now) >= 100 << 20);
    }
}
