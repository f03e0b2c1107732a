//! A thread that does what may hang, in the place of one that must not.
//!
//! ```text
//!   caller ── job ──> thread ── reads ──> a process, or its files
//!          <─ answer ──┘
//!          or, after a while: none. That thread is left behind, and the next job gets another one.
//! ```

use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use prof_events::current_thread;
use prof_events::system::{self, Ahead};
use prof_model::Tid;
use prof_procfs::Task;

/// A thread for jobs that may hang, and its successors. Dropping it ends the thread when its job is
/// done.
#[derive(Debug)]
pub struct JobThread {
    current: Mutex<Current>,
    is_ahead: bool,
}

#[derive(Debug)]
struct Current {
    slot: Option<Arc<Slot>>,
    /// How many more threads may be left behind.
    more: u32,
}

/// What a thread and its caller share.
#[derive(Debug, Default)]
struct Slot {
    tid: AtomicI32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Job(Box<dyn FnOnce() + Send>),
    /// The thread has taken the job.
    Running,
    Done,
    /// Nobody waits any more.
    Abandoned,
}

impl JobThread {
    /// How many threads may hang; then nothing more is done.
    const MOST: u32 = 8;

    /// One whose thread, as soon as it is needed, has the priority of a reader of rings if it
    /// `is_ahead`: its jobs are to be short.
    pub fn new(is_ahead: bool) -> Self {
        Self {
            current: Mutex::new(Current {
                slot: None,
                more: Self::MOST,
            }),
            is_ahead,
        }
    }

    /// The result of a job; `None` if it waits for longer than this for anything but a CPU, or no
    /// thread is left.
    pub fn run<T: Send + 'static>(
        &self,
        time_out: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut current = lock(&self.current);
        if current.slot.is_none() {
            current.more = current.more.checked_sub(1)?;
            current.slot = Some(Slot::with_thread(self.is_ahead)?);
        }
        let slot = current.slot.as_ref()?;
        let answer = Arc::new(Mutex::new(None));
        let answered = Arc::clone(&answer);
        let is_done = slot.run(time_out, move || {
            let result = job();
            *lock(&answered) = Some(result);
        });
        if !is_done {
            current.slot = None;
        }
        lock(&answer).take()
    }
}

impl Slot {
    const ONCE_MORE: Duration = Duration::from_millis(2);

    fn with_thread(is_ahead: bool) -> Option<Arc<Self>> {
        let slot = Arc::new(Self::default());
        let of_thread = Arc::clone(&slot);
        let thread = thread::Builder::new().name("reading".into());
        let run = move || {
            if is_ahead {
                system::raise_thread_priority(Ahead::OfThese);
            }
            of_thread.serve();
        };
        thread.spawn(run).ok()?;
        Some(slot)
    }

    /// What the thread does.
    fn serve(&self) {
        (self.tid).store(current_thread(), Ordering::Release);
        let mut state = lock(&self.state);
        loop {
            match std::mem::take(&mut *state) {
                State::Job(job) => {
                    *state = State::Running;
                    drop(state);
                    job();
                    state = lock(&self.state);
                    if matches!(*state, State::Running) {
                        *state = State::Done;
                        self.changed.notify_all();
                    }
                }
                State::Abandoned => return,
                other => {
                    *state = other;
                    state = wait(&self.changed, state);
                }
            }
        }
    }

    /// Has the thread do a job; returns whether it is done.
    fn run(&self, time_out: Duration, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = lock(&self.state);
        *state = State::Job(Box::new(job));
        self.changed.notify_all();
        let mut since = Instant::now();
        let mut is_last = false;
        while !matches!(*state, State::Done) {
            let mut left = time_out.saturating_sub(since.elapsed());
            if left.is_zero() {
                let hangs = !waits_for_cpu(self.tid.load(Ordering::Acquire));
                if hangs && is_last {
                    *state = State::Abandoned;
                    return false;
                }
                // It may have waited for the slot, which we held: once more.
                is_last = hangs;
                if hangs {
                    left = Self::ONCE_MORE;
                } else {
                    since = Instant::now();
                }
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *state = State::Idle;
        true
    }
}

/// Whether a thread of this process runs, or waits for nothing but a CPU.
pub(crate) fn waits_for_cpu(tid: Tid) -> bool {
    let own = std::process::id() as i32;
    tid == 0
        || Task::thread(own, tid)
            .stat()
            .is_ok_and(|stat| stat.state.is_runnable())
}

impl Drop for JobThread {
    fn drop(&mut self) {
        if let Some(slot) = &lock(&self.current).slot {
            *lock(&slot.state) = State::Abandoned;
            slot.changed.notify_all();
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Job(_) => "Job",
            Self::Running => "Running",
            Self::Done => "Done",
            Self::Abandoned => "Abandoned",
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    #[test]
    fn a_thread_that_hangs_is_replaced_a_few_times() {
        let thread = JobThread::new(false);
        assert_eq!(thread.run(SHORT, || 1), Some(1));
        let mut ends = Vec::new();
        for _ in 0..JobThread::MOST {
            assert_eq!(thread.run(SHORT, || 2), Some(2));
            let (end, wait) = mpsc::channel::<()>();
            assert_eq!(thread.run(SHORT, move || wait.recv().is_ok()), None);
            ends.push(end);
        }
        assert_eq!(thread.run(SHORT, || 3), None);
    }

    #[test]
    fn a_job_that_computes_is_waited_for() {
        let thread = JobThread::new(false);
        let job = || {
            let begin = Instant::now();
            while begin.elapsed() < 5 * SHORT {}
            4
        };
        assert_eq!(thread.run(SHORT, job), Some(4));
    }

    #[test]
    fn a_job_that_panics_has_no_answer() {
        let thread = JobThread::new(false);
        assert_eq!(thread.run(SHORT, || -> u8 { panic!("a test") }), None);
        assert_eq!(thread.run(SHORT, || 5), Some(5));
    }
}
