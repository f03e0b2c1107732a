//! What can be done with signals: the system calls, with safe arguments.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail with EFBIG, instead of
/// silently ending this process (SIGXFSZ). A signal that is ignored stays ignored.
///
/// The signal is handled, not blocked or ignored: a program that we start finds it as we did.
pub fn survive_file_size_limit() {
    extern "C" fn ignore(_: i32) {}
    let handler: extern "C" fn(i32) = ignore;
    // SAFETY: a `sigaction` of zeros is valid: default action, no flags, empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for the call, which only writes what the action is.
    unsafe { libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut action) };
    if action.sa_sigaction == libc::SIG_DFL {
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is valid, and its handler does nothing.
        unsafe { libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut()) };
    }
}

/// Sets what a signal does, to the default or to nothing; returns what it did.
pub(super) fn set_disposition(signal: i32, disposition: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: neither the default nor ignoring runs code of ours.
    unsafe { libc::signal(signal, disposition) }
}

/// Whether nothing happens when this signal comes.
pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: a `sigaction` of zeros is valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for the call, which only writes what the action is.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action.sa_sigaction == libc::SIG_IGN
}

/// Which signals a thread blocks.
pub(crate) struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// Blocks all signals in the calling thread, and returns the previous mask.
    pub(crate) fn block_all() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both point to memory for a set; the first call fills one, which the second reads
        // before it fills the other. Neither can fail with these arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }

    /// Blocks exactly these signals in the calling thread.
    pub(crate) fn restore(self) {
        // SAFETY: the set is valid, and the previous one is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Has the default effect of a signal that this thread blocks.
pub(super) fn take_effect(signal: i32) {
    let this = set(&[signal]);
    // SAFETY: the number is that of a signal, the set is valid, and the previous one is not
    // requested.
    unsafe {
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const this, ptr::null_mut());
    }
}

/// Ends this process as this signal does by default.
pub fn end_by(signal: i32) -> ! {
    set_disposition(signal, libc::SIG_DFL);
    take_effect(signal);
    std::process::exit(128 + signal)
}

pub(super) fn bit(signal: i32) -> u64 {
    1 << (signal & 63)
}

pub(super) fn set(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initializes the set, sigaddset only adds valid signal numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

pub(super) fn signalfd(set: &libc::sigset_t) -> io::Result<OwnedFd> {
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set is initialized; signalfd returns a new descriptor or -1.
    let fd = unsafe { libc::signalfd(-1, set, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next signal of a signalfd, if any.
pub(super) fn read(fd: &OwnedFd) -> Option<libc::signalfd_siginfo> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = mem::size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer has `size` bytes.
    let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
    if usize::try_from(read) != Ok(size) {
        return None;
    }
    // SAFETY: the kernel filled the whole structure, which is plain integers.
    Some(unsafe { info.assume_init() })
}
