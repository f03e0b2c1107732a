//! The system calls on events, each as one safe function.

pub(crate) mod context_pin;
pub(crate) mod exit_reports;
pub(crate) mod probe_reach;
pub(crate) mod ring;

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys as sys;
use prof_model::Tid;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::attr::setup::Setup;
use crate::request::target_threads::MonitoredThreads;

/// Opens the event of the attribute, of these threads on one CPU, or on any: as a member of the
/// group that `leader` leads in the same place, if there is one. A path that the attribute points
/// to must outlive the call.
pub(crate) fn open(
    attr: &mut sys::bindings::perf_event_attr,
    monitored: MonitoredThreads<'_>,
    cpu: Option<u32>,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let (id, flag) = match monitored {
        MonitoredThreads::Thread(tid) => (tid, 0),
        MonitoredThreads::Everybody => (-1, 0),
        MonitoredThreads::Cgroup(folder) => {
            (folder.as_raw_fd(), sys::bindings::PERF_FLAG_PID_CGROUP)
        }
    };
    let cpu = cpu.map_or(Ok(-1), |cpu| i32::try_from(cpu).map_err(|_| Errno::INVAL))?;
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    let flags = (sys::bindings::PERF_FLAG_FD_CLOEXEC | flag).into();
    // SAFETY: the attribute is a valid structure of the size that it states, or larger. It requests
    // nothing that would write to our memory, and a path that it points to is that of a spec, which
    // outlives the call. The folder's descriptor is open during the call.
    let fd = check(unsafe { sys::perf_event_open(attr, id, cpu, leader, flags) })?;
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Counts an event of the calling thread, from now on.
pub(crate) fn open_counter(setup: &Setup) -> Result<OwnedFd, Errno> {
    let like = setup.attr();
    let mut attr = sys::bindings::perf_event_attr {
        size: like.size,
        type_: like.type_,
        config: like.config,
        read_format: sys::bindings::PERF_FORMAT_TOTAL_TIME_RUNNING.into(),
        ..Default::default()
    };
    attr.set_exclude_user(like.exclude_user());
    attr.set_exclude_kernel(like.exclude_kernel());
    attr.set_exclude_hv(like.exclude_hv());
    attr.set_exclude_guest(like.exclude_guest());
    open(&mut attr, MonitoredThreads::CALLER, None, None)
}

/// Opens an event that counts the event of `setup`, and writes a READ record as a thread ends, or
/// else records of its switches, its start and its end.
pub(crate) fn open_exit_counter(
    setup: &Setup,
    tid: Tid,
    cpu: u32,
    switches: bool,
) -> Result<OwnedFd, Errno> {
    let mut attr = sys::bindings::perf_event_attr {
        sample_regs_user: 0,
        sample_regs_intr: 0,
        sample_stack_user: 0,
        branch_sample_type: 0,
        ..setup.attr()
    };
    // The fields at the end of READ records, as of all others; nothing else is written.
    let stacks = sys::bindings::PERF_SAMPLE_REGS_USER
        | sys::bindings::PERF_SAMPLE_REGS_INTR
        | sys::bindings::PERF_SAMPLE_STACK_USER
        | sys::bindings::PERF_SAMPLE_BRANCH_STACK
        | sys::bindings::PERF_SAMPLE_CALLCHAIN;
    attr.sample_type &= !u64::from(stacks);
    attr.set_exclude_callchain_user(0);
    attr.set_freq(0);
    attr.__bindgen_anon_1.sample_period = 0;
    attr.set_precise_ip(0);
    attr.set_inherit_stat((!switches).into());
    attr.set_context_switch(switches.into());
    attr.set_mmap(0);
    attr.set_mmap2(0);
    attr.set_build_id(0);
    attr.set_comm(0);
    attr.set_comm_exec(0);
    attr.set_task(switches.into());
    open(&mut attr, MonitoredThreads::Thread(tid), Some(cpu), None)
}

/// Opens an event that counts nothing and is not inherited ([`ContextPin`](crate::ContextPin)).
pub(crate) fn open_context_pin(tid: Tid) -> Result<OwnedFd, Errno> {
    let mut attr = sys::bindings::perf_event_attr {
        size: crate::attr::perf_event_attr::ATTR_SIZE as u32,
        type_: sys::bindings::PERF_TYPE_SOFTWARE,
        config: sys::bindings::PERF_COUNT_SW_DUMMY.into(),
        ..Default::default()
    };
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    open(&mut attr, MonitoredThreads::Thread(tid), None, None)
}

/// Redirects the samples of `event` to the ring of `leader`, which must be on the same CPU.
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

/// Sends this signal, and all signals of the event, to a thread of this process.
pub(crate) fn signal_thread(event: BorrowedFd<'_>, tid: Tid, signal: i32) -> Result<(), Errno> {
    /// `struct f_owner_ex`, and the commands of fcntl that take it (asm-generic/fcntl.h).
    #[repr(C)]
    struct Owner {
        kind: i32,
        id: Tid,
    }
    const F_SETSIG: i32 = 10;
    const F_SETOWN_EX: i32 = 15;
    const F_OWNER_TID: i32 = 0;
    let owner = Owner {
        kind: F_OWNER_TID,
        id: tid,
    };
    let fd = event.as_raw_fd();
    // SAFETY: the kernel reads the structure, whose layout is its own.
    check(unsafe { libc::fcntl(fd, F_SETOWN_EX, &raw const owner) })?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(fd, F_SETSIG, signal) }).map(drop)
}

/// Makes the event, and those inherited from it, send its signal with each sample, or stops that.
pub(crate) fn set_async(event: BorrowedFd<'_>, on: bool) -> Result<(), Errno> {
    let flags = if on { libc::O_ASYNC } else { 0 };
    // SAFETY: no memory is involved. An event has no other flags that could be set.
    check(unsafe { libc::fcntl(event.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

/// Whether all threads that the event counts have ended.
pub(crate) fn has_hung_up(event: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut polled = [PollFd::from_borrowed_fd(event, PollFlags::empty())];
    rustix::event::poll(&mut polled, Some(&Timespec::default()))?;
    let [polled] = polled;
    Ok(polled.revents().contains(PollFlags::HUP))
}

/// Sets the period of the event, and of events that inherit it later.
pub(crate) fn set_period(event: BorrowedFd<'_>, period: u64) -> Result<(), Errno> {
    let request = sys::bindings::PERIOD as libc::Ioctl;
    // SAFETY: the kernel reads eight bytes from `period`. (The function of this name in the
    // bindings would pass it by value.)
    check(unsafe { libc::ioctl(event.as_raw_fd(), request, &raw const period) }).map(drop)
}

/// The event's count, including events inherited from it.
pub(crate) fn count(event: BorrowedFd<'_>) -> Option<u64> {
    let mut counts = [0; 64];
    let read = rustix::io::read(event, &mut counts).ok()?;
    let value = counts.get(..read)?.first_chunk()?;
    Some(u64::from_ne_bytes(*value))
}

/// The count of a counter of [`open_counter`], and its time in nanoseconds.
pub(crate) fn count_and_time(event: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let mut counts = [0; 16];
    let read = rustix::io::read(event, &mut counts).ok()?;
    let (words, _) = counts.get(..read)?.as_chunks();
    match words {
        &[value, time] => Some((u64::from_ne_bytes(value), u64::from_ne_bytes(time))),
        _ => None,
    }
}

/// How many records of this event, and of those inherited from it, were lost because the ring was
/// full.
pub(crate) fn lost(event: BorrowedFd<'_>, setup: &Setup) -> Option<u64> {
    if !setup.features.lost_counts {
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
