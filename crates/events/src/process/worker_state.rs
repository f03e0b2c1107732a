//! What a worker and its supervisor know of each other.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use prof_model::Pid;
use rustix::mm::{MapFlags, ProtFlags};

/// How a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// With this status.
    Exit(u8),
    /// By this signal.
    Signal(i32),
}

/// What both processes see.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    /// The signals that the worker takes from its supervisor, each as a bit.
    pub(crate) taken: AtomicU64,
    /// How the worker ends, once it is about to.
    pub(crate) end: AtomicU32,
}

/// What the worker knows.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) state: &'static SharedState,
    pub(crate) supervisor: Pid,
}

/// In the worker only.
pub(crate) static WORKER: OnceLock<Worker> = OnceLock::new();

impl WorkerEnd {
    const SIGNAL: u32 = 1 << 16;
    const EXIT: u32 = 1 << 17;

    pub(crate) fn encode(self) -> u32 {
        match self {
            Self::Exit(status) => Self::EXIT | u32::from(status),
            Self::Signal(signal) => Self::SIGNAL | signal.unsigned_abs(),
        }
    }

    pub(crate) fn decode(code: u32) -> Option<Self> {
        match code {
            0 => None,
            _ if code & Self::SIGNAL != 0 => Some(Self::Signal((code & 0xff) as i32)),
            _ => Some(Self::Exit(code as u8)),
        }
    }

    pub(crate) fn of(status: ExitStatus) -> Option<Self> {
        let exit = status.code().map(|code| Self::Exit(code as u8));
        exit.or_else(|| status.signal().map(Self::Signal))
    }
}

/// The process that was started, of which this one is the worker; `None` if this is no worker.
pub fn supervisor() -> Option<Pid> {
    WORKER.get().map(|worker| worker.supervisor)
}

/// From now on, these signals, each as a bit, come from the supervisor; 0: none, so that they end
/// both.
pub(crate) fn take_signals(these: u64) {
    if let Some(worker) = WORKER.get() {
        worker.state.taken.store(these, Ordering::Release);
    }
}

/// This signal is about to end the process.
pub(crate) fn ends_by(signal: i32) {
    if let Some(worker) = WORKER.get() {
        worker.tell(WorkerEnd::Signal(signal));
    }
}

impl SharedState {
    pub(crate) fn share() -> io::Result<&'static Self> {
        // SAFETY: new memory, at an address that the kernel chooses.
        let memory = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size_of::<Self>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }?;
        // SAFETY: it is aligned to pages, large enough, never unmapped, and all zeros, which is a
        // valid value. Both processes access it by atomic operations only.
        Ok(unsafe { &*memory.cast::<Self>() })
    }
}

impl Worker {
    /// Tells the supervisor how this process is about to end. If a thread hangs, that takes long:
    /// nobody is to wait for what it has open.
    pub(crate) fn tell(&self, end: WorkerEnd) {
        self.state.end.store(end.encode(), Ordering::Release);
        // SAFETY: the process does nothing more with descriptors than to close them.
        unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
        // SAFETY: it takes two integers.
        unsafe { libc::kill(self.supervisor, libc::SIGCHLD) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told() {
        for end in [
            WorkerEnd::Exit(0),
            WorkerEnd::Exit(255),
            WorkerEnd::Signal(libc::SIGTERM),
        ] {
            assert_eq!(WorkerEnd::decode(end.encode()), Some(end));
        }
        assert_eq!(WorkerEnd::decode(0), None);
    }
}
