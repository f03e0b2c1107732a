//! The system calls of tracing, each as one safe function.

use std::mem::MaybeUninit;
use std::ptr;

use prof_model::{Pid, Tid};
use rustix::io::Errno;

/// Stops to report besides signals. Tracing ends by itself when the tracer does.
const OPTIONS: i32 = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// How the C library counts requests.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

pub(super) fn seize(tid: Tid) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, tid, OPTIONS as usize)
}

pub(super) fn interrupt(tid: Tid) -> Result<(), Errno> {
    ptrace(libc::PTRACE_INTERRUPT, tid, 0)
}

pub(super) fn resume(tid: Tid, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_CONT, tid, signal as usize)
}

pub(super) fn listen(tid: Tid) -> Result<(), Errno> {
    ptrace(libc::PTRACE_LISTEN, tid, 0)
}

/// The message of a stop for an event: an id.
pub(super) fn message(tid: Tid) -> Result<u64, Errno> {
    let mut message: libc::c_ulong = 0;
    let data = (&raw mut message) as usize;
    ptrace(libc::PTRACE_GETEVENTMSG, tid, data)?;
    Ok(message)
}

/// The general registers, into `buffer`; says how many bytes there are.
pub(super) fn registers(tid: Tid, buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the kernel writes at most `iov_len` bytes to the buffer, which is ours, and the
    // number of them to the vector.
    check(unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            tid,
            libc::NT_PRSTATUS as usize,
            &raw mut vector,
        )
    })?;
    Ok(vector.iov_len.min(buffer.len()))
}

/// The answer of waitid.
struct Waited {
    tid: Tid,
    /// CLD_EXITED or such.
    code: i32,
    status: i32,
}

impl Waited {
    fn is_stop(&self) -> bool {
        matches!(self.code, libc::CLD_TRAPPED | libc::CLD_STOPPED)
    }
}

/// The next thread of ours that has stopped, and the status of its stop.
pub(super) fn next_stop() -> Option<(Tid, i32)> {
    let waited = wait(libc::P_ALL, 0, libc::WSTOPPED)?;
    waited.is_stop().then_some((waited.tid, waited.status))
}

/// The next thread of ours that has ended, other than `spared`; its remains are removed.
pub(super) fn next_ended(spared: Option<Pid>) -> Option<Tid> {
    let waited = wait(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT)?;
    // A stop that came just now is found by the next look for stops.
    if Some(waited.tid) == spared || waited.is_stop() {
        return None;
    }
    let id = libc::id_t::try_from(waited.tid).ok()?;
    wait(libc::P_PID, id, libc::WEXITED)?;
    Some(waited.tid)
}

/// waitid for what this thread traces or has created, without waiting.
fn wait(kind: libc::idtype_t, id: libc::id_t, options: i32) -> Option<Waited> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = options | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the kernel writes to `info`, which has the size for it.
    check(unsafe { libc::waitid(kind, id, info.as_mut_ptr(), options) }.into()).ok()?;
    // SAFETY: zeros are a valid siginfo_t, and the kernel has written one for SIGCHLD over them,
    // if anything.
    let waited = unsafe {
        let info = info.assume_init();
        Waited {
            tid: info.si_pid(),
            code: info.si_code,
            status: info.si_status(),
        }
    };
    (waited.tid != 0).then_some(waited)
}

/// A request whose data is a number, or an address that the caller answers for.
fn ptrace(request: Request, tid: Tid, data: usize) -> Result<(), Errno> {
    // SAFETY: seize, interrupt, resume and listen take numbers and touch no memory of ours;
    // GETEVENTMSG writes one word to the caller's pointer.
    check(unsafe { libc::ptrace(request, tid, ptr::null_mut::<libc::c_void>(), data) })
}

fn check(result: libc::c_long) -> Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
