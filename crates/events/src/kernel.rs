//! The system calls on events, each as one safe function.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys as sys;
use prof_model::Tid;
use rustix::io::Errno;

use crate::setup::Setup;

/// Opens the event for one thread on one CPU: disabled, or as a member of the group that `leader`
/// leads on the same CPU and thread.
pub(crate) fn open(
    setup: &Setup,
    tid: Tid,
    cpu: u32,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    open_attr(&mut setup.attr(), tid, Some(cpu), leader)
}

/// Opens what the attribute says, for one thread (0 is the caller, -1 all of them) on one CPU, or
/// on any. A path that it points to must outlive the call.
pub(crate) fn open_attr(
    attr: &mut sys::bindings::perf_event_attr,
    tid: Tid,
    cpu: Option<u32>,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let cpu = cpu.map_or(Ok(-1), |cpu| i32::try_from(cpu).map_err(|_| Errno::INVAL))?;
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    let flags = sys::bindings::PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: the attribute is a valid structure of the size that it states, or larger. It asks
    // for nothing that would write to our memory, and a path that it points to is that of a spec,
    // which outlives the call.
    let fd = check(unsafe { sys::perf_event_open(attr, tid, cpu, leader, flags) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets the samples of `event` go to the ring of `leader`, which must be on the same CPU.
pub(crate) fn redirect(event: BorrowedFd<'_>, leader: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: both are open descriptors; the kernel checks that they are events that fit.
    check(unsafe { sys::ioctls::SET_OUTPUT(event.as_raw_fd(), leader.as_raw_fd()) }).map(drop)
}

/// The id that the event's samples carry.
pub(crate) fn id(event: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut id = 0;
    // SAFETY: the kernel writes eight bytes to `id`.
    check(unsafe { sys::ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Starts sampling.
pub(crate) fn enable(event: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { sys::ioctls::ENABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Stops sampling.
pub(crate) fn disable(event: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { sys::ioctls::DISABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// How many records of this event, and of those inherited from it, found the ring full.
pub(crate) fn lost(event: BorrowedFd<'_>, setup: &Setup) -> Option<u64> {
    if !setup.lost_counts {
        return None;
    }
    // PERF_FORMAT_ID | PERF_FORMAT_LOST: value, id, lost. With PERF_FORMAT_GROUP the number of
    // members goes first, and the leader's values come before theirs.
    let at = if setup.reads_group { 24 } else { 16 };
    let mut counts = [0; 4096];
    let read = rustix::io::read(event, &mut counts).ok()?;
    let lost = counts.get(..read)?.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_ne_bytes(lost))
}

fn check(result: RawFd) -> Result<RawFd, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
