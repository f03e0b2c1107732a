//! The signals that end a recording, as something to poll.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// SIGINT, SIGTERM and SIGHUP, blocked and readable from a descriptor (signalfd).
///
/// Nothing is handled, only blocked, so dispositions stay what they were: a SIGHUP that `nohup`
/// ignores stays ignored, for us and for the command. Dropping it restores the signal mask of the
/// thread it is dropped in; whatever came and was not read is then delivered.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub signal: i32,
    /// Whether the terminal sent it, and so to the command as well (same process group).
    pub from_terminal: bool,
}

impl Signals {
    const WATCHED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    /// Blocks the signals in this thread and in those that it makes from now on: call it first
    /// thing in `main`, before there are other threads.
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors.
    pub fn block() -> io::Result<Self> {
        let mut watched = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initializes the set, sigaddset only adds valid signal numbers.
        let watched = unsafe {
            libc::sigemptyset(watched.as_mut_ptr());
            for signal in Self::WATCHED {
                libc::sigaddset(watched.as_mut_ptr(), signal);
            }
            watched.assume_init()
        };
        // SAFETY: the set is initialized; signalfd returns a new descriptor or -1.
        let fd = unsafe {
            libc::signalfd(
                -1,
                &raw const watched,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are valid for the call, which fills in `before` when it succeeds, and
        // it fails only for an unknown first argument.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const watched, before.as_mut_ptr());
            before.assume_init()
        };
        Ok(Self { fd, before })
    }

    /// The next signal that came, if any. Never waits.
    pub fn next(&self) -> Option<Interrupt> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = mem::size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has room for `size` bytes.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(read) != Ok(size) {
            return None;
        }
        // SAFETY: the kernel filled the whole structure, which is plain integers.
        let info = unsafe { info.assume_init() };
        Some(Interrupt {
            signal: info.ssi_signo as i32,
            // The terminal's driver is the kernel (SI_KERNEL); kill and tgkill are others' doing.
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }

    /// The signal mask as it was before: what a command that we start should have.
    pub(crate) fn mask_before(&self) -> libc::sigset_t {
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
        // SAFETY: the set is the one that pthread_sigmask gave us.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}
