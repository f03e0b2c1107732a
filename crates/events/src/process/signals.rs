//! The signals that end a recording, as something to poll.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prof_model::Pid;

use crate::process::duplicate_signals::{Arrival, DuplicateSignals};
use crate::process::poll::wait_readable;
use crate::process::signal_calls::{
    bit, is_ignored, read, set, set_disposition, signalfd, take_effect,
};
use crate::process::worker_state;

/// SIGINT, SIGTERM and SIGHUP, blocked and readable from a descriptor (signalfd). SIGCHLD is
/// blocked with them, for [`Signals::children`].
///
/// Signals are not handled, only blocked, so dispositions do not change: a SIGHUP that `nohup`
/// ignores stays ignored, for us and for the command. The others end a recording even if they are
/// ignored, as they are for the background jobs of a shell's script. Only an ignored SIGCHLD stays
/// ignored for the command alone: nobody can wait for children that are ignored. Dropping it
/// restores the signal mask of the current thread; pending signals are then delivered.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: SignalState,
    /// Of a worker.
    pairs: Mutex<DuplicateSignals>,
}

/// What a command inherits of signals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalState {
    mask: libc::sigset_t,
    ignores_children: bool,
}

impl SignalState {
    /// Restores it in this thread, for the program that it executes. It may be called between fork
    /// and exec.
    pub(crate) fn restore(&self) {
        if self.ignores_children {
            set_disposition(libc::SIGCHLD, libc::SIG_IGN);
        }
        // SAFETY: the mask is valid, and the call writes nothing.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut());
        }
    }
}

/// Readable when a child, or a thread that we trace, has stopped or ended (SIGCHLD).
#[derive(Debug)]
pub struct ChildSignals {
    fd: OwnedFd,
}

impl ChildSignals {
    /// Makes it wait for the next signal.
    pub fn clear(&self) {
        while read(&self.fd).is_some() {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub signal: i32,
    /// Whether the terminal sent it, and so to the command as well (same process group).
    pub from_terminal: bool,
}

impl Interrupt {
    /// Whether it requests another file, and not the end.
    pub fn rotates(&self) -> bool {
        self.signal == Signals::ROTATE
    }

    /// Has the default effect of the signal on the process: ends it, unless the signal is ignored.
    pub fn take_effect(&self) {
        if !is_ignored(self.signal) {
            worker_state::ends_by(self.signal);
        }
        take_effect(self.signal);
    }
}

impl Signals {
    const WATCHED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    pub(super) const ROTATE: i32 = libc::SIGUSR2;

    /// Blocks the signals in this thread and in those that it creates later: call it first in
    /// `main`, before there are other threads.
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors.
    pub fn block() -> io::Result<Self> {
        Self::block_these(&Self::WATCHED)
    }

    /// Like [`block`](Self::block), and also blocks SIGUSR2, which requests another file.
    ///
    /// # Errors
    ///
    /// As [`block`](Self::block).
    pub fn block_with_rotation() -> io::Result<Self> {
        let [a, b, c] = Self::WATCHED;
        Self::block_these(&[a, b, c, Self::ROTATE])
    }

    fn block_these(watched: &[i32]) -> io::Result<Self> {
        // Linux queues ignored signals, too, while they are blocked.
        let is_watched = |&signal: &i32| signal != libc::SIGHUP || !is_ignored(signal);
        let watched: Vec<i32> = watched.iter().copied().filter(is_watched).collect();
        let bits = watched.iter().fold(0, |bits, &signal| bits | bit(signal));
        let watched = set(&watched);
        let fd = signalfd(&watched)?;
        let mut blocked = watched;
        // SAFETY: the set is initialized, and the signals' numbers valid.
        unsafe {
            libc::sigaddset(&raw mut blocked, libc::SIGCHLD);
        }
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are valid for the call, which fills in `before` when it succeeds, and
        // it fails only for an unknown first argument.
        let mask = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, before.as_mut_ptr());
            before.assume_init()
        };
        let children = set_disposition(libc::SIGCHLD, libc::SIG_DFL);
        let before = SignalState {
            mask,
            ignores_children: children == libc::SIG_IGN,
        };
        worker_state::take_signals(bits);
        Ok(Self {
            fd,
            before,
            pairs: Mutex::default(),
        })
    }

    /// The next signal that came, if any. Never waits.
    ///
    /// A signal to the process group, as from the terminal, comes to a worker and to its
    /// supervisor, which passes it on: it counts once.
    pub fn next(&self) -> Option<Interrupt> {
        loop {
            let info = read(&self.fd)?;
            let (signal, sender) = (info.ssi_signo as i32, info.ssi_pid as Pid);
            let is_passed =
                info.ssi_code == libc::SI_QUEUE && worker_state::supervisor() == Some(sender);
            // Signals from the terminal come from the kernel (SI_KERNEL), not from kill or tgkill.
            let sender = match is_passed {
                true => info.ssi_ptr as Pid,
                false if info.ssi_code == libc::SI_KERNEL => 0,
                false => sender,
            };
            let arrival = Arrival {
                signal,
                sender,
                is_passed,
            };
            let is_duplicate = || self.pairs().completes(arrival, Instant::now());
            if worker_state::supervisor().is_none() || !is_duplicate() {
                return Some(Interrupt {
                    signal,
                    // The end of the terminal is signalled to the session's leader only.
                    from_terminal: sender == 0 && signal != libc::SIGHUP,
                });
            }
        }
    }

    fn pairs(&self) -> MutexGuard<'_, DuplicateSignals> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for signals that the supervisor still passes on, and that have come already: otherwise
    /// they would end this process.
    fn wait_for_duplicates(&self) {
        let awaits = || self.pairs().awaits(Instant::now());
        while let Some(left) = awaits() {
            if wait_readable(&[self.as_fd()], Some(left)).is_err() {
                return;
            }
            while self.next().is_some() {}
        }
    }

    /// Changes of children, as a descriptor to poll.
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors.
    pub fn children(&self) -> io::Result<ChildSignals> {
        let fd = signalfd(&set(&[libc::SIGCHLD]))?;
        Ok(ChildSignals { fd })
    }

    /// The previous state, for a command that we start.
    pub(crate) fn state_before(&self) -> SignalState {
        self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if worker_state::supervisor().is_some() {
            self.wait_for_duplicates();
        }
        worker_state::take_signals(0);
        self.before.restore();
    }
}
