//! The bounded buffer between the thread that drains the rings and the one that unwinds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::queue::message::{Content, Message, PythonReading, StackTail};
use crate::queue::pressure::Pressure;

/// What one pass over all rings brought, ring by ring: not yet in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Python frames, with the numbers of the samples that they were read for.
    python: Vec<(usize, PythonReading)>,
    /// Numbers that the reader counts, up to the end of this batch.
    pub(crate) counts: ReaderCounts,
    /// When the pass began, by the clock of the records.
    pub(crate) begun: u64,
    /// Whether the recording is to go on in another file with what comes after this pass began.
    pub(crate) rotates: bool,
}

/// A record in a batch, or a message, which has no bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    content: Content,
    start: usize,
    length: usize,
    /// Stack of the live target beyond the sample's own copy, and where in `bytes` it is.
    beyond: Option<(StackTail, usize)>,
}

/// What the reader thread counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderCounts {
    /// Samples dropped because the buffer was full.
    pub(crate) dropped: u64,
    /// Stacks cut because the buffer was nearly full.
    pub(crate) cut: u64,
    /// Times that a ring held something that is no record.
    pub(crate) corrupt: u64,
}

impl Batch {
    /// Adds the record that `append` writes to the end of a buffer.
    pub(crate) fn push(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.push_as(Content::Record, append);
    }

    /// Adds what the reader itself has to say.
    pub(crate) fn push_message(&mut self, message: Message) {
        self.push_as(Content::Message(message), |_| {});
    }

    /// Adds bytes that are this.
    pub(crate) fn push_as(&mut self, content: Content, append: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        append(&mut self.bytes);
        self.entries.push(Entry {
            content,
            start,
            length: self.bytes.len() - start,
            beyond: None,
        });
    }

    /// Lets `read` append stack from beyond the copy of the last sample pushed, and returns where
    /// that is.
    pub(crate) fn push_beyond(
        &mut self,
        read: impl FnOnce(&mut Vec<u8>) -> Option<StackTail>,
    ) -> Option<(StackTail, usize)> {
        let at = self.bytes.len();
        let beyond = read(&mut self.bytes)?;
        self.share_beyond(beyond, at);
        Some((beyond, at))
    }

    /// What was read for another sample is also beyond the copy of the last one pushed.
    pub(crate) fn share_beyond(&mut self, beyond: StackTail, at: usize) {
        if let Some(entry) = self.entries.last_mut() {
            entry.beyond = Some((beyond, at));
        }
    }

    /// These Python frames were read for the last sample pushed.
    pub(crate) fn push_python(&mut self, reading: PythonReading) {
        let index = self.entries.len().saturating_sub(1);
        self.python.push((index, reading));
    }

    /// The Python frames that were read for the sample of this number.
    pub(crate) fn python(&self, index: usize) -> Option<&PythonReading> {
        let at = self.python.binary_search_by_key(&index, |&(of, _)| of);
        at.ok().and_then(|at| Some(&self.python.get(at)?.1))
    }

    /// The record pushed last.
    pub(crate) fn last_mut(&mut self) -> &mut [u8] {
        let entry = self.entries.last();
        entry
            .and_then(|entry| self.bytes.get_mut(entry.start..entry.start + entry.length))
            .unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the entry of this number is.
    pub(crate) fn content(&self, index: usize) -> Content {
        self.entries
            .get(index)
            .map_or(Content::Record, |entry| entry.content)
    }

    /// The record of this number.
    pub(crate) fn record(&self, index: usize) -> &[u8] {
        self.entries
            .get(index)
            .and_then(|entry| self.bytes.get(entry.start..entry.start + entry.length))
            .unwrap_or(&[])
    }

    /// Stack from beyond the copy of the sample of this number.
    pub(crate) fn beyond(&self, index: usize) -> Option<(StackTail, &[u8])> {
        let entry = self.entries.get(index)?;
        let (beyond, at) = entry.beyond?;
        let bytes = self.bytes.get(at..at + beyond.length)?;
        Some((beyond, bytes))
    }

    /// Bytes of memory that its records take.
    fn footprint(&self) -> usize {
        let python = self.python.iter().map(|(_, reading)| reading.footprint());
        self.bytes.len() + self.entries.len() * size_of::<Entry>() + python.sum::<usize>()
    }

    /// Empties it, for use again, without more memory than `kept` bytes.
    fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.entries.clear();
        self.python.clear();
        self.rotates = false;
        // One huge pass must not keep its memory for ever.
        self.bytes.shrink_to(kept);
    }
}

/// Batches on their way from the reader to the session, within a budget of memory, and what the
/// session tells the reader.
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

/// What the session tells the reader of the samples that it has unwound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// Stacks that went on beyond the kernel's copy.
    pub(crate) deep: u32,
    /// Stacks that could not have been read any later: beyond the copy, they had changed since the
    /// sample before.
    pub(crate) changed: u32,
    /// Stacks of Python: their frames must be read at once.
    pub(crate) python: u32,
}

/// What [`RecordQueue::pop`] found.
#[derive(Debug)]
pub(crate) enum Popped {
    /// The next batch.
    Batch(Batch),
    /// Nothing as yet.
    Nothing,
    /// Nothing, and no more will come.
    End,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    /// When the first of them came.
    waits_since: Option<Instant>,
    /// Whether the session is to take them now.
    due: bool,
    closed: bool,
    feedback: Feedback,
    given_up: bool,
    /// Empty batches for use again.
    free: Vec<Batch>,
    /// Bytes of all batches that the session has not given back.
    used: usize,
    /// Their records.
    records: usize,
    /// How often the session has slept and was woken.
    wakeups: u64,
}

impl RecordQueue {
    /// Batches kept for use again.
    const SPARE: usize = 4;
    /// Each of them keeps this part of the budget at most.
    const KEPT: usize = 4;
    /// Waking the session takes longer than what it does for a few samples. So they wait until they
    /// take this part of the budget, or for so long.
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

    /// An empty batch to fill, and the pressure under which that is to be done: with so many
    /// bytes to go before it rises.
    pub(crate) fn start(&self) -> (Batch, Room) {
        let mut state = self.lock();
        let room = Room {
            used: state.used,
            budget: self.budget,
        };
        (state.free.pop().unwrap_or_default(), room)
    }

    /// Hands a batch over, and wakes the session if it is `hurried`, or if there is enough to do.
    /// An empty one still says that a pass was made.
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

    /// No more batches will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Takes back a batch that nothing was put into.
    pub(crate) fn return_unused(&self, batch: Batch) {
        let mut state = self.lock();
        if state.free.len() < Self::SPARE {
            state.free.push(batch);
        }
    }

    /// Nobody takes batches any more: there is no use in filling them.
    pub(crate) fn give_up(&self) {
        self.lock().given_up = true;
        self.changed.notify_all();
    }

    /// Waits until [`give_up`](Self::give_up) is called, but no longer than this. Returns how many
    /// records the session still has to deal with, `None` if it will not.
    pub(crate) fn left(&self, timeout: Duration) -> Option<usize> {
        let state = self.lock();
        let waited = (self.changed).wait_timeout_while(state, timeout, |state| !state.given_up);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.given_up).then_some(state.records)
    }

    /// Nobody wants to wait for more stacks to be unwound.
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

    /// Tells the reader of samples that were unwound.
    pub(crate) fn report(&self, feedback: Feedback) {
        let mut state = self.lock();
        state.feedback.deep += feedback.deep;
        state.feedback.changed += feedback.changed;
        state.feedback.python += feedback.python;
    }

    /// What was [reported](Self::report) since this was asked last.
    pub(crate) fn take_feedback(&self) -> Feedback {
        std::mem::take(&mut self.lock().feedback)
    }

    /// Waits until there is enough to do, but no longer than this, and returns the next batch.
    pub(crate) fn pop(&self, timeout: Duration) -> Popped {
        let state = self.lock();
        let slept = !state.due && !state.closed;
        let waited =
            (self.changed).wait_timeout_while(state, timeout, |state| !state.due && !state.closed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wakeups += u64::from(slept);
        let next = state.waiting.pop_front();
        state.waiting_bytes -= next.as_ref().map_or(0, Batch::footprint);
        // What is there is taken to the last.
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

    /// Takes back a batch that was dealt with.
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

/// Room in the buffer while a batch is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    used: usize,
    budget: usize,
}

impl Room {
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
    fn what_waits_counts_until_it_is_given_back() {
        let queue = RecordQueue::new(1000);
        let (mut batch, room) = queue.start();
        assert_eq!(room.pressure(&batch), Pressure::Low);
        batch.push(|bytes| bytes.resize(2000, 7));
        assert_eq!(room.pressure(&batch), Pressure::Full);
        queue.push(batch, true);
        let (empty, room) = queue.start();
        assert_eq!(room.pressure(&empty), Pressure::Full);
        let Popped::Batch(batch) = queue.pop(Duration::MAX) else {
            panic!("it waits");
        };
        assert_eq!(batch.record(0), [7; 2000]);
        assert!(batch.record(1).is_empty());
        queue.recycle(batch);
        let (reused, room) = queue.start();
        assert!(reused.is_empty());
        assert_eq!(room.pressure(&reused), Pressure::Low);
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
            // All that is there is taken by who comes by itself.
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
    fn what_waits_for_long_wakes_the_session() {
        let queue = RecordQueue::new(8000);
        queue.push(Batch::default(), false);
        let long_ago = Instant::now().checked_sub(RecordQueue::LONGEST_WAIT);
        queue.lock().waits_since = long_ago;
        queue.push(Batch::default(), false);
        assert!(queue.lock().due);
    }
}
