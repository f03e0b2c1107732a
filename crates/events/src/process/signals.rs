//! The signals that end a recording, as something to poll.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use prof_model::Tid;

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

/// Sets what a signal does, to the default or to nothing; returns what it did.
fn set_disposition(signal: i32, disposition: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: neither the default nor ignoring runs code of ours.
    unsafe { libc::signal(signal, disposition) }
}

/// Whether nothing happens when this signal comes.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a `sigaction` of zeros is valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for the call, which only writes what the action is.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action.sa_sigaction == libc::SIG_IGN
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
        let this = set(&[self.signal]);
        // SAFETY: the number is that of a signal, the set is valid, and the previous one is not
        // requested.
        unsafe {
            libc::raise(self.signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const this, ptr::null_mut());
        }
    }
}

impl Signals {
    const WATCHED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    const ROTATE: i32 = libc::SIGUSR2;

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
        Ok(Self { fd, before })
    }

    /// The next signal that came, if any. Never waits.
    pub fn next(&self) -> Option<Interrupt> {
        let info = read(&self.fd)?;
        Some(Interrupt {
            signal: info.ssi_signo as i32,
            // Signals from the terminal come from the kernel (SI_KERNEL), not from kill or tgkill.
            // The end of the terminal is signalled to the session's leader only.
            from_terminal: info.ssi_code == libc::SI_KERNEL
                && info.ssi_signo != libc::SIGHUP as u32,
        })
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

fn set(signals: &[i32]) -> libc::sigset_t {
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

fn signalfd(set: &libc::sigset_t) -> io::Result<OwnedFd> {
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
fn read(fd: &OwnedFd) -> Option<libc::signalfd_siginfo> {
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

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.before.restore();
    }
}
