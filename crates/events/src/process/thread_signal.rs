//! A signal that wakes one thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use prof_model::Tid;

use crate::process::signal_calls::{read, set, signalfd};

/// A signal to the thread that created this, which it blocks, readable from a descriptor: SIGURG,
/// which does nothing if it is not blocked.
#[derive(Debug)]
pub(crate) struct ThreadSignal {
    fd: OwnedFd,
}

impl ThreadSignal {
    /// Its number.
    pub(crate) const NUMBER: i32 = libc::SIGURG;

    /// Blocks it in the calling thread, from now on.
    pub(crate) fn block() -> io::Result<Self> {
        let fd = signalfd(&set(&[Self::NUMBER]))?;
        Self::block_here();
        Ok(Self { fd })
    }

    /// Blocks it in the calling thread, which [waits](Self::wait) for it without a descriptor.
    pub(crate) fn block_here() {
        let set = set(&[Self::NUMBER]);
        // SAFETY: the set is valid, and the previous one is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
    }

    /// Waits until it has come to the calling thread, which blocks it: however often, once.
    pub(crate) fn wait() {
        let set = set(&[Self::NUMBER]);
        // SAFETY: the set is valid, and the signal's details are not requested. It fails only if
        // another signal was handled (EINTR).
        while unsafe { libc::sigwaitinfo(&raw const set, ptr::null_mut()) } < 0 {}
    }

    /// Forgets that it has come to the calling thread, which blocks it.
    pub(crate) fn forget() {
        let set = set(&[Self::NUMBER]);
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the set and the time are valid, and the signal's details are not requested.
        unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const at_once) };
    }

    /// Sends it to a thread of this process; nothing happens if that has ended.
    pub(crate) fn send(tid: Tid) {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: it takes three integers.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, Self::NUMBER) };
    }

    /// The calling thread, as the kernel calls it.
    pub(crate) fn this_thread() -> Tid {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    /// Makes it wait for the next signal. Only the thread that created it may call this.
    pub(crate) fn clear(&self) {
        // However often it came, there is one to read.
        read(&self.fd);
    }
}

impl AsFd for ThreadSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
