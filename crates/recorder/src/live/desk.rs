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
pub struct Desk {
    clerk: Mutex<Clerk>,
    is_ahead: bool,
}

#[derive(Debug)]
struct Clerk {
    tray: Option<Arc<Tray>>,
    /// How many more threads may be left behind.
    more: u32,
}

/// What a thread and its caller share.
#[derive(Debug, Default)]
struct Tray {
    tid: AtomicI32,
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
enum Content {
    #[default]
    Nothing,
    Job(Box<dyn FnOnce() + Send>),
    /// The thread has taken the job.
    InWork,
    Done,
    /// Nobody waits any more.
    Left,
}

impl Desk {
    /// How many threads of a desk may hang; then it does nothing more.
    const MOST: u32 = 8;

    /// A desk whose thread, as soon as it is needed, has the priority of a reader of rings if it
    /// `is_ahead`: its jobs are to be short.
    pub fn new(is_ahead: bool) -> Self {
        Self {
            clerk: Mutex::new(Clerk {
                tray: None,
                more: Self::MOST,
            }),
            is_ahead,
        }
    }

    /// The result of a job; `None` if it waits for longer than this for anything but a CPU, or no
    /// thread is left.
    pub fn ask<T: Send + 'static>(
        &self,
        patience: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut clerk = lock(&self.clerk);
        if clerk.tray.is_none() {
            clerk.more = clerk.more.checked_sub(1)?;
            clerk.tray = Some(Tray::with_thread(self.is_ahead)?);
        }
        let tray = clerk.tray.as_ref()?;
        let answer = Arc::new(Mutex::new(None));
        let answered = Arc::clone(&answer);
        let is_done = tray.hand(patience, move || {
            let result = job();
            *lock(&answered) = Some(result);
        });
        if !is_done {
            clerk.tray = None;
        }
        lock(&answer).take()
    }
}

impl Tray {
    const ONCE_MORE: Duration = Duration::from_millis(2);

    fn with_thread(is_ahead: bool) -> Option<Arc<Self>> {
        let tray = Arc::new(Self::default());
        let of_thread = Arc::clone(&tray);
        let thread = thread::Builder::new().name("reading".into());
        let run = move || {
            if is_ahead {
                system::raise_thread_priority(Ahead::OfThese);
            }
            of_thread.serve();
        };
        thread.spawn(run).ok()?;
        Some(tray)
    }

    /// What the thread does.
    fn serve(&self) {
        (self.tid).store(current_thread(), Ordering::Release);
        let mut content = lock(&self.content);
        loop {
            match std::mem::take(&mut *content) {
                Content::Job(job) => {
                    *content = Content::InWork;
                    drop(content);
                    job();
                    content = lock(&self.content);
                    if matches!(*content, Content::InWork) {
                        *content = Content::Done;
                        self.changed.notify_all();
                    }
                }
                Content::Left => return,
                other => {
                    *content = other;
                    content = wait(&self.changed, content);
                }
            }
        }
    }

    /// Has the thread do a job; returns whether it is done.
    fn hand(&self, patience: Duration, job: impl FnOnce() + Send + 'static) -> bool {
        let mut content = lock(&self.content);
        *content = Content::Job(Box::new(job));
        self.changed.notify_all();
        let mut since = Instant::now();
        let mut is_last = false;
        while !matches!(*content, Content::Done) {
            let mut left = patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                let hangs = !waits_for_cpu(self.tid.load(Ordering::Acquire));
                if hangs && is_last {
                    *content = Content::Left;
                    return false;
                }
                // It may have waited for the tray, which we held: once more.
                is_last = hangs;
                if hangs {
                    left = Self::ONCE_MORE;
                } else {
                    since = Instant::now();
                }
            }
            let waited = self.changed.wait_timeout(content, left);
            (content, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *content = Content::Nothing;
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

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(tray) = &lock(&self.clerk).tray {
            *lock(&tray.content) = Content::Left;
            tray.changed.notify_all();
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Job(_) => "Job",
            Self::InWork => "InWork",
            Self::Done => "Done",
            Self::Left => "Left",
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
        let desk = Desk::new(false);
        assert_eq!(desk.ask(SHORT, || 1), Some(1));
        let mut ends = Vec::new();
        for _ in 0..Desk::MOST {
            assert_eq!(desk.ask(SHORT, || 2), Some(2));
            let (end, wait) = mpsc::channel::<()>();
            assert_eq!(desk.ask(SHORT, move || wait.recv().is_ok()), None);
            ends.push(end);
        }
        assert_eq!(desk.ask(SHORT, || 3), None);
    }

    #[test]
    fn a_job_that_computes_is_waited_for() {
        let desk = Desk::new(false);
        let job = || {
            let begin = Instant::now();
            while begin.elapsed() < 5 * SHORT {}
            4
        };
        assert_eq!(desk.ask(SHORT, job), Some(4));
    }

    #[test]
    fn a_job_that_panics_has_no_answer() {
        let desk = Desk::new(false);
        assert_eq!(desk.ask(SHORT, || -> u8 { panic!("a test") }), None);
        assert_eq!(desk.ask(SHORT, || 5), Some(5));
    }
}
