//! The work in a process of its own, so that prof itself can always end.
//!
//! A thread that reads the memory of another process can wait in the kernel for ever: for a page of
//! a file whose file system does not answer. Not even SIGKILL ends that, and a process ends with
//! the last of its threads. So the process that was started only waits for another one, which does
//! all of the work, and ends when that says so.
//!
//! ```text
//!   shell ── waits for ──> supervisor: passes signals on, and the exit status back
//!                            └─ worker ── reads ──> targets
//!                                 └─ command
//! ```

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use prof_model::Pid;

use crate::process::passed_signals::PassedSignals;
use crate::process::poll::wait_readable;
use crate::process::signal_calls::SignalMask;
use crate::process::worker_state::{SharedState, WORKER, Worker, WorkerEnd};

/// Does the work, whose result is an exit status, in another process, and returns here how that has
/// ended. It is to be called before there are other threads that hold locks.
///
/// # Errors
///
/// When no process can be created.
pub fn in_worker(work: impl FnOnce() -> u8) -> io::Result<WorkerEnd> {
    let state = SharedState::share()?;
    let supervisor = rustix::process::getpid().as_raw_pid();
    let before = SignalMask::block_all();
    // SAFETY: the child goes on as a copy of this thread. Other threads, if there are any, only
    // wait for this one, and hold no locks.
    match unsafe { libc::fork() } {
        ..0 => {
            let error = io::Error::last_os_error();
            before.restore();
            Err(error)
        }
        0 => {
            let worker = Worker { state, supervisor };
            worker.run(before, work)
        }
        pid => {
            let signals = PassedSignals::new();
            let end = signals.and_then(|signals| supervise(pid, &signals, state));
            before.restore();
            end
        }
    }
}

impl Worker {
    /// The status of a panic.
    const PANICKED: u8 = 101;

    fn run(self, before: SignalMask, work: impl FnOnce() -> u8) -> ! {
        let supervisor = self.supervisor;
        // SAFETY: it takes two integers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
        if parent != Some(supervisor) {
            // It ended before that.
            std::process::exit(1);
        }
        let worker = WORKER.get_or_init(|| self);
        before.restore();
        let status = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Self::PANICKED);
        let _ = io::stdout().flush();
        worker.tell(WorkerEnd::Exit(status));
        std::process::exit(status.into())
    }
}

/// Waits for the end of the worker, and passes signals on to it.
fn supervise(worker: Pid, signals: &PassedSignals, state: &SharedState) -> io::Result<WorkerEnd> {
    /// How long a process may take to end if none of its threads hangs.
    const ENDING: Duration = Duration::from_millis(500);
    let mut told: Option<(WorkerEnd, Instant)> = None;
    // Whether a shell stops both: the worker first, which gives back the terminal.
    let mut stops = false;
    loop {
        let (ended, has_stopped) = match wait_for(worker)? {
            Some(Change::Ended(end)) => (Some(end), false),
            Some(Change::Stopped) => (None, true),
            None => (None, false),
        };
        if has_stopped && std::mem::take(&mut stops) {
            // SAFETY: it takes an integer.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        if told.is_none() {
            let end = WorkerEnd::decode(state.end.load(Ordering::Acquire));
            told = end.map(|end| (end, Instant::now()));
        }
        if let Some(end) = ended {
            return Ok(told.map_or(end, |(end, _)| end));
        }
        let timeout = match told {
            Some((end, since)) if since.elapsed() >= ENDING => return Ok(end),
            Some((_, since)) => Some(ENDING.saturating_sub(since.elapsed())),
            None => None,
        };
        wait_readable(&[signals.as_fd()], timeout)?;
        while let Some(signal) = signals.next() {
            match state.taken.load(Ordering::Acquire) & signal.bit() {
                _ if signal.is_of_jobs() => {
                    stops = signal.stops();
                    signal.send_to(worker);
                }
                0 => signal.take_effect(),
                _ => signal.pass_to(worker),
            }
        }
    }
}

/// What has become of a child.
enum Change {
    Ended(WorkerEnd),
    Stopped,
}

/// What has become of a child, if that is new.
fn wait_for(child: Pid) -> io::Result<Option<Change>> {
    let mut status = 0;
    let options = libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: the status is valid for the call.
    let waited = unsafe { libc::waitpid(child, &raw mut status, options) };
    match waited {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ if libc::WIFSTOPPED(status) => Ok(Some(Change::Stopped)),
        _ => Ok(WorkerEnd::of(ExitStatus::from_raw(status)).map(Change::Ended)),
    }
}
