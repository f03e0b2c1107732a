//! Signals on their way from a supervisor to its worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use prof_model::Pid;

use crate::process::signal_calls::{
    bit, is_ignored, read, set, set_disposition, signalfd, take_effect,
};
use crate::process::signals::Signals;

/// The signals that a supervisor passes on to its worker.
#[derive(Debug)]
pub(crate) struct PassedSignals {
    fd: OwnedFd,
}

/// One of them.
pub(crate) struct PassedSignal {
    number: i32,
    /// 0: the kernel.
    sender: Pid,
}

impl PassedSignals {
    /// Those that came to this thread, which blocks all signals. Other signals than these have
    /// their effect from now on.
    pub(crate) fn new() -> io::Result<Self> {
        let mut passed = vec![libc::SIGINT, libc::SIGTERM, Signals::ROTATE];
        let unless_ignored = [libc::SIGHUP, libc::SIGTSTP, libc::SIGCONT];
        passed.extend(unless_ignored.iter().filter(|&&signal| !is_ignored(signal)));
        // Nobody can wait for children that are ignored.
        set_disposition(libc::SIGCHLD, libc::SIG_DFL);
        let watched = [passed.as_slice(), &[libc::SIGCHLD]].concat();
        let watched = set(&watched);
        let fd = signalfd(&watched)?;
        // SAFETY: the set is valid, and the previous one is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const watched, ptr::null_mut()) };
        Ok(Self { fd })
    }

    /// The next one that came, if any.
    pub(crate) fn next(&self) -> Option<PassedSignal> {
        loop {
            let info = read(&self.fd)?;
            let number = info.ssi_signo as i32;
            if number != libc::SIGCHLD {
                let sender = match info.ssi_code {
                    libc::SI_KERNEL => 0,
                    _ => info.ssi_pid as Pid,
                };
                return Some(PassedSignal { number, sender });
            }
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PassedSignal {
    pub(crate) fn bit(&self) -> u64 {
        bit(self.number)
    }

    /// Has its effect on this process, whose worker then ends, too.
    pub(crate) fn take_effect(&self) {
        take_effect(self.number);
        let this = set(&[self.number]);
        // It is ignored here, and the worker may take it later.
        // SAFETY: the set is valid, and the previous one is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const this, ptr::null_mut()) };
    }

    /// Whether it stops or continues the jobs of a shell.
    pub(crate) fn is_of_jobs(&self) -> bool {
        self.stops() || self.number == libc::SIGCONT
    }

    /// Whether it stops a job.
    pub(crate) fn stops(&self) -> bool {
        self.number == libc::SIGTSTP
    }

    /// Sends the same to the worker, as the kernel's jobs do it: once more has no effect.
    pub(crate) fn send_to(&self, worker: Pid) {
        // SAFETY: it takes two integers.
        unsafe { libc::kill(worker, self.number) };
    }

    pub(crate) fn pass_to(&self, worker: Pid) {
        let value = libc::sigval {
            sival_ptr: ptr::without_provenance_mut(self.sender as usize),
        };
        // SAFETY: the value is an integer, which nobody follows.
        unsafe { libc::sigqueue(worker, self.number, value) };
    }
}
