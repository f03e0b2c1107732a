//! Stopping threads for a moment to see where they are (ptrace): slower than events and felt by
//! the target, but allowed for one's own processes where perf_event_open is not.
//!
//! ```text
//!   Tracer ──seize──> thread   runs on; from now on it stops for us:
//!          ──interrupt─>         on request .................. Why::Interrupted
//!                                before a signal reaches it .. Why::Signal     resume hands it on
//!                                when it creates another ..... Why::Made       which is traced too
//!                                after exec, before exit ..... Why::Exec, Why::Exiting
//!          <───next── Stopped { tid, why } ── registers, memory ── resume
//! ```
//!
//! The kernel ties all this to the thread that seizes, so a [`Tracer`] stays in one thread. When
//! that ends, the kernel releases everything that it traced.

mod calls;
mod privileges;
mod registers;

use std::marker::PhantomData;

pub use privileges::lacks_privileges;
use prof_model::{Pid, Tid};
pub use registers::StoppedRegisters;
pub use rustix::io::Errno;

/// The calling thread as a tracer of others.
#[derive(Debug)]
pub struct Tracer {
    /// A child of ours that another caller waits for.
    spared: Option<Pid>,
    /// Neither `Send` nor `Sync`: the kernel ties tracing to a thread.
    one_thread: PhantomData<*const ()>,
}

/// A thread that has stopped for us, or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The thread.
    pub tid: Tid,
    /// Why.
    pub why: Why,
}

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Stopped by [`Tracer::interrupt`], or because it is new.
    Interrupted,
    /// Its process was stopped (SIGSTOP, Ctrl-Z): [`Tracer::leave_stopped`].
    GroupStop,
    /// A signal is about to reach it: [`Tracer::resume`] with that signal.
    Signal(i32),
    /// It has created this thread or process, which stops too, before or after.
    Made(Tid),
    /// It runs a new program. The other threads of its process are gone, and it has the id of the
    /// first of them, whatever its id was before.
    Exec {
        /// Its id before.
        former: Tid,
    },
    /// It is about to end.
    Exiting,
    /// It has ended; there is nothing to resume.
    Gone,
}

impl Tracer {
    /// A tracer that does not wait for the end of `spared`, a child of ours.
    pub fn new(spared: Option<Pid>) -> Self {
        Self {
            spared,
            one_thread: PhantomData,
        }
    }

    /// Starts tracing a thread, which continues to run; threads and processes that it creates are
    /// traced, too.
    ///
    /// # Errors
    ///
    /// EPERM if it may not be traced (another user's, already traced, Yama), ESRCH, or the error of
    /// a seccomp filter.
    pub fn seize(&self, tid: Tid) -> Result<(), Errno> {
        calls::seize(tid)
    }

    /// Asks a thread to stop as soon as it runs. One that waits in the kernel is woken up, and its
    /// system call may end with EINTR: ask only those that run.
    ///
    /// # Errors
    ///
    /// ESRCH when it has ended.
    pub fn interrupt(&self, tid: Tid) -> Result<(), Errno> {
        calls::interrupt(tid)
    }

    /// Resumes a stopped thread, with this signal if it is not 0.
    pub fn resume(&self, tid: Tid, signal: i32) {
        // It may have been killed meanwhile, which `next` will report.
        let _ = calls::resume(tid, signal);
    }

    /// Leaves a thread in the stop of its process, out of which SIGCONT wakes it.
    pub fn leave_stopped(&self, tid: Tid) {
        let _ = calls::listen(tid);
    }

    /// The registers of a stopped thread.
    ///
    /// # Errors
    ///
    /// ESRCH when it was killed meanwhile.
    pub fn registers(&self, tid: Tid) -> Result<StoppedRegisters, Errno> {
        registers::read(tid)
    }

    /// The next thread that has stopped or ended, if any. Never waits: SIGCHLD says that there
    /// may be one.
    pub fn next(&self) -> Option<Stopped> {
        if let Some((tid, status)) = calls::next_stop() {
            return Some(Stopped {
                tid,
                why: why(tid, status),
            });
        }
        let tid = calls::next_ended(self.spared)?;
        Some(Stopped {
            tid,
            why: Why::Gone,
        })
    }
}

/// Makes sense of the status of a stop: a signal, and an event above it.
fn why(tid: Tid, status: i32) -> Why {
    let (signal, event) = (status & 0xff, status >> 8);
    let message = || calls::message(tid).unwrap_or(0) as Tid;
    match event {
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Why::Interrupted,
        libc::PTRACE_EVENT_STOP => Why::GroupStop,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Why::Made(message())
        }
        libc::PTRACE_EVENT_EXEC => Why::Exec { former: message() },
        libc::PTRACE_EVENT_EXIT => Why::Exiting,
        0 => Why::Signal(signal),
        // Nothing else was requested.
        _ => Why::Signal(0),
    }
}

#[cfg(test)]
mod tests;
