//! The bounded queue between the thread that drains the rings and the one that unwinds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::queue::batch::Batch;
use crate::queue::feedback::Feedback;
use crate::queue::pressure::Pressure;

/// Batches on their way from the reader to the session, within a budget of memory, and the
/// session's feedback to the reader.
///
/// ```text
///   reader ── batches, then the end ──> session      woken for a decent amount of work
///          <── Feedback, given up ───
/// ```
#[derive(Debug)]
pub(crate) struct RecordQueue {
    budget: usize,
    state: Mutex<State>,
    changed: Condvar,
    unwinds: AtomicBool,
}

/// The result of [`RecordQueue::pop`].
#[derive(Debug)]
pub(crate) enum Popped {
    /// The next batch.
    Batch(Batch),
    /// No batch yet.
    Nothing,
    /// No batch, and no more will come.
    End,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    /// When the first of them arrived.
    waits_since: Option<Instant>,
    /// Whether the session should take them now.
    due: bool,
    closed: bool,
    feedback: Feedback,
    given_up: bool,
    /// Empty batches for reuse.
    free: Vec<Batch>,
    /// Bytes of all batches that the session has not returned.
    used: usize,
    /// Their records.
    records: usize,
    /// How often the session slept and was woken.
    wakeups: u64,
}

impl RecordQueue {
    /// Batches kept for reuse.
    const SPARE: usize = 4;
    /// Each of them keeps at most this part of the budget.
    const KEPT: usize = 4;
    /// Waking the session takes longer than processing a few samples. So they wait until they use
    /// this part of the budget, or this long.
    const WORTH_WAKING: usize = 32;
    const LONGEST_WAIT: Duration = Duration::from_millis(250);

    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            state: Mutex::default(),
            changed: Condvar::new(),
            unwinds: AtomicBool::new(true),
        }
    }

    /// An empty batch to fill, and the current pressure, with the bytes until it rises.
    pub(crate) fn start(&self) -> (Batch, FreeSpace) {
        let mut state = self.lock();
        let space = FreeSpace {
            used: state.used,
            budget: self.budget,
        };
        (state.free.pop().unwrap_or_default(), space)
    }

    /// Adds a batch, and wakes the session if it is `hurried`, or if there is enough to do. An
    /// empty batch still reports that a pass was made.
    pub(crate) fn push(&self, batch: Batch, hurried: bool) {
        let mut state = self.lock();
        if state.given_up {
            return;
        }
        let bytes = batch.footprint();
        state.used += bytes;
        state.waiting_bytes += bytes;
        state.records += batch.len();
        let hurried = hurried || batch.rotates;
        state.waiting.push_back(batch);
        let since = *state.waits_since.get_or_insert_with(Instant::now);
        let enough = state.waiting_bytes >= self.budget / Self::WORTH_WAKING;
        if hurried || enough || since.elapsed() >= Self::LONGEST_WAIT {
            state.due = true;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Ends the queue: no more batches will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Takes back an empty batch.
    pub(crate) fn return_unused(&self, batch: Batch) {
        let mut state = self.lock();
        if state.free.len() < Self::SPARE {
            state.free.push(batch);
        }
    }

    /// The session takes no more batches: the reader need not fill them.
    pub(crate) fn give_up(&self) {
        self.lock().given_up = true;
        self.changed.notify_all();
    }

    /// Waits until [`give_up`](Self::give_up) is called, but at most this long. Returns how many
    /// records the session still has to process, `None` if it has given up.
    pub(crate) fn left(&self, timeout: Duration) -> Option<usize> {
        let state = self.lock();
        let waited = (self.changed).wait_timeout_while(state, timeout, |state| !state.given_up);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.given_up).then_some(state.records)
    }

    /// Ends unwinding: the session writes the remaining samples without it.
    pub(crate) fn stop_unwinding(&self) {
        self.unwinds.store(false, Ordering::Relaxed);
    }

    /// Whether stacks are to be unwound: until [`stop_unwinding`](Self::stop_unwinding) is called.
    pub(crate) fn unwinds(&self) -> bool {
        self.unwinds.load(Ordering::Relaxed)
    }

    /// Whether [`give_up`](Self::give_up) was called.
    pub(crate) fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Gives the reader feedback on unwound samples.
    pub(crate) fn report(&self, feedback: Feedback) {
        self.lock().feedback.add(feedback);
    }

    /// The feedback [reported](Self::report) since the last call.
    pub(crate) fn take_feedback(&self) -> Feedback {
        std::mem::take(&mut self.lock().feedback)
    }

    /// Waits until there is enough to do, but at most this long, and returns the next batch.
    pub(crate) fn pop(&self, timeout: Duration) -> Popped {
        let state = self.lock();
        let slept = !state.due && !state.closed;
        let waited =
            (self.changed).wait_timeout_while(state, timeout, |state| !state.due && !state.closed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wakeups += u64::from(slept);
        let next = state.waiting.pop_front();
        state.waiting_bytes -= next.as_ref().map_or(0, Batch::footprint);
        // All waiting batches are taken.
        state.due = !state.waiting.is_empty();
        state.waits_since = state.waits_since.filter(|_| state.due);
        match next {
            Some(batch) => Popped::Batch(batch),
            None if state.closed => Popped::End,
            None => Popped::Nothing,
        }
    }

    /// How often [`pop`](Self::pop) has slept so far.
    pub(crate) fn session_wakeups(&self) -> u64 {
        self.lock().wakeups
    }

    /// How much of the budget is used.
    pub(crate) fn percent_full(&self) -> usize {
        self.lock().used.saturating_mul(100) / self.budget.max(1)
    }

    /// Takes back a batch that was processed.
    pub(crate) fn recycle(&self, mut batch: Batch) {
        let (footprint, records) = (batch.footprint(), batch.len());
        batch.clear(self.budget / Self::KEPT);
        let mut state = self.lock();
        state.used = state.used.saturating_sub(footprint);
        state.records = state.records.saturating_sub(records);
        if state.free.len() < Self::SPARE {
            state.free.push(batch);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The free space in the queue while a batch is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeSpace {
    used: usize,
    budget: usize,
}

impl FreeSpace {
    /// The pressure with this batch, as far as it is filled.
    pub(crate) fn pressure(&self, batch: &Batch) -> Pressure {
        Pressure::of(self.used + batch.bytes.len(), self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_with_use() {
        let cases = [
            (0, Pressure::Low),
            (49, Pressure::Low),
            (50, Pressure::Raised),
            (74, Pressure::Raised),
            (75, Pressure::High),
            (99, Pressure::High),
            (100, Pressure::Full),
            (1000, Pressure::Full),
        ];
        for (used, expected) in cases {
            assert_eq!(Pressure::of(used, 100), expected, "{used}");
        }
    }

    #[test]
    fn waiting_bytes_count_until_they_are_returned() {
        let queue = RecordQueue::new(1000);
        let (mut batch, space) = queue.start();
        assert_eq!(space.pressure(&batch), Pressure::Low);
        batch.push(|bytes| bytes.resize(2000, 7));
        assert_eq!(space.pressure(&batch), Pressure::Full);
        queue.push(batch, true);
        let (empty, space) = queue.start();
        assert_eq!(space.pressure(&empty), Pressure::Full);
        let Popped::Batch(batch) = queue.pop(Duration::MAX) else {
            panic!("it waits");
        };
        assert_eq!(batch.get(0).expect("a record").bytes, [7; 2000]);
        assert!(batch.get(1).is_none());
        queue.recycle(batch);
        let (reused, space) = queue.start();
        assert!(reused.is_empty());
        assert_eq!(space.pressure(&reused), Pressure::Low);
    }

    #[test]
    fn after_the_last_batch_comes_nothing() {
        let queue = RecordQueue::new(1000);
        assert!(matches!(queue.pop(Duration::ZERO), Popped::Nothing));
        queue.push(Batch::default(), false);
        queue.close();
        assert!(matches!(queue.pop(Duration::MAX), Popped::Batch(_)));
        assert!(matches!(queue.pop(Duration::MAX), Popped::End));
    }

    #[test]
    fn the_session_is_woken_for_enough_or_in_a_hurry() {
        let check = |pushed: &[(usize, bool)], expected: bool| {
            let queue = RecordQueue::new(32_000);
            for &(bytes, hurried) in pushed {
                let mut batch = Batch::default();
                batch.push(|out| out.resize(bytes, 7));
                queue.push(batch, hurried);
            }
            assert_eq!(queue.lock().due, expected, "{pushed:?}");
            // A session that comes by itself takes everything.
            for _ in pushed {
                assert!(matches!(queue.pop(Duration::ZERO), Popped::Batch(_)));
            }
            assert!(matches!(queue.pop(Duration::ZERO), Popped::Nothing));
            queue.push(Batch::default(), false);
            assert!(!queue.lock().due, "it begins anew");
        };
        check(&[(8, false)], false);
        check(&[(8, false), (8, true), (8, false)], true);
        check(&[(300, false), (300, false)], false);
        check(&[(300, false), (300, false), (300, false)], true);
    }

    #[test]
    fn bytes_that_wait_long_wake_the_session() {
        let queue = RecordQueue::new(8000);
        queue.push(Batch::default(), false);
        let long_ago = Instant::now().checked_sub(RecordQueue::LONGEST_WAIT);
        queue.lock().waits_since = long_ago;
        queue.push(Batch::default(), false);
        assert!(queue.lock().due);
    }
}
