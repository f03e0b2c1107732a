//! What is kept of threads with deep stacks, from sample to sample.

use std::collections::HashMap;

use prof_model::Tid;

use crate::session::unwind::stack_snapshot::{SampledStack, StackSnapshot};
use crate::session::unwind::tail_change::TailChange;

/// A few threads whose stacks were deeper than their dumps.
#[derive(Debug)]
pub(crate) struct DeepThreads {
    threads: HashMap<Tid, DeepThread>,
    /// Bytes of memory that snapshots may use, without the one that was stored last.
    most_bytes: usize,
}

/// What is kept of a thread.
#[derive(Debug, Default)]
pub(crate) struct DeepThread {
    /// Its last whole stack; empty if there is none.
    pub(crate) snapshot: StackSnapshot,
    pub(crate) tail_change: TailChange,
}

impl DeepThreads {
    /// The most threads.
    const THREADS: usize = 64;
    /// The most bytes of all snapshots, by default. A stack of 5,000 frames takes 200,000.
    pub(crate) const USUAL_BYTES: usize = 16 << 20;

    /// Threads with snapshots of at most this many bytes; 0 for none at all.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            threads: HashMap::new(),
            most_bytes,
        }
    }

    /// A thread, if it is known.
    pub(crate) fn get(&mut self, tid: Tid) -> Option<&mut DeepThread> {
        self.threads.get_mut(&tid)
    }

    /// A thread, which is kept from now on. It may replace any other one: if more threads alternate
    /// than can be kept, the one that was not seen for longest would be the next.
    pub(crate) fn entry(&mut self, tid: Tid) -> &mut DeepThread {
        if self.threads.len() >= Self::THREADS
            && !self.threads.contains_key(&tid)
            && let Some(any) = fastrand::choice(self.threads.keys().copied())
        {
            self.threads.remove(&any);
        }
        self.threads.entry(tid).or_default()
    }

    /// Stores the stack of a thread, and its frames; drops those of others until they fit.
    pub(crate) fn remember(&mut self, tid: Tid, now: &SampledStack<'_>, frames: &[u64]) {
        if self.most_bytes == 0 {
            return;
        }
        self.entry(tid).snapshot.replace(now, frames);
        while self.bytes() > self.most_bytes {
            let snapshots = self.threads.iter_mut();
            let others = snapshots.filter(|(of, it)| **of != tid && it.snapshot.footprint() > 0);
            let Some((_, other)) = fastrand::choice(others.collect::<Vec<_>>()) else {
                break;
            };
            other.snapshot = StackSnapshot::default();
        }
    }

    /// Forgets a thread.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.threads.remove(&tid);
    }

    /// Bytes of memory that snapshots use.
    fn bytes(&self) -> usize {
        let threads = self.threads.values();
        threads.map(|thread| thread.snapshot.footprint()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Departure;
    use super::*;

    fn stack(dump: &[u8]) -> SampledStack<'_> {
        SampledStack {
            start: 0,
            dump,
            tail: None,
        }
    }

    fn snapshots(threads: &DeepThreads) -> usize {
        let threads = threads.threads.values();
        threads.filter(|it| it.snapshot.footprint() > 0).count()
    }

    fn has_snapshot(threads: &mut DeepThreads, tid: Tid) -> bool {
        let thread = threads.get(tid);
        thread.is_some_and(|thread| thread.snapshot.footprint() > 0)
    }

    #[test]
    fn threads_are_remembered_within_bounds() {
        let check = |dump: &[u8], most: usize| {
            let mut threads = DeepThreads::new(DeepThreads::USUAL_BYTES);
            for tid in 0..most as Tid {
                threads.remember(tid, &stack(dump), &[]);
            }
            assert!((0..most as Tid).all(|tid| has_snapshot(&mut threads, tid)));
            for tid in 0..1000 {
                threads.remember(tid, &stack(dump), &[]);
                assert!(has_snapshot(&mut threads, tid));
                assert!(snapshots(&threads) <= most, "{tid}");
            }
            assert_eq!(threads.threads.len(), DeepThreads::THREADS);
        };
        check(&[0; 8], DeepThreads::THREADS);
        check(&vec![0; 1 << 20], 16);
    }

    #[test]
    fn stacks_that_grow_stay_within_bounds() {
        let mut threads = DeepThreads::new(DeepThreads::USUAL_BYTES);
        for dump in [&[0; 8][..], &[0; 1 << 20]] {
            for tid in 0..DeepThreads::THREADS as Tid {
                threads.remember(tid, &stack(dump), &[]);
                assert!(has_snapshot(&mut threads, tid));
            }
        }
        let bytes = threads.bytes();
        assert!(bytes <= DeepThreads::USUAL_BYTES, "{bytes}");
    }

    #[test]
    fn few_threads_are_remembered() {
        let mut threads = DeepThreads::new(0);
        for tid in 0..1000 {
            assert!(threads.entry(tid).tail_change.changes(&[1]));
            assert!(!threads.entry(tid).tail_change.changes(&[1]));
            threads.remember(tid, &stack(&[0; 8]), &[]);
        }
        assert_eq!(threads.threads.len(), DeepThreads::THREADS);
        assert_eq!(snapshots(&threads), 0);
    }

    #[test]
    fn the_next_thread_of_a_number_is_another_one() {
        let mut threads = DeepThreads::new(DeepThreads::USUAL_BYTES);
        assert!(threads.entry(1).tail_change.changes(&[2, 1]));
        threads.entry(1).tail_change.set_ambiguous(true);
        threads.remember(1, &stack(&[0; 8]), &[]);
        threads.forget(1);
        assert!(threads.get(1).is_none());
        assert!(threads.entry(1).tail_change.changes(&[2, 1]));
        let tail_change = &mut threads.entry(1).tail_change;
        assert!(!tail_change.may_differ(Departure::Joined, None, None));
        assert!(!has_snapshot(&mut threads, 1));
    }
}
