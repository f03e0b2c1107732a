//! Which threads run first.

use std::mem;

/// The priority of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Before all ordinary threads.
    OfOrdinary = 1,
    /// Before threads of that priority, too.
    OfThese = 2,
}

/// The result of [`raise_thread_priority`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// It runs before all ordinary threads.
    RealTime,
    /// It shares the CPU with them, with this nice value.
    Nice(i32),
}

/// Raises the calling thread's priority as far as this user may: before all ordinary threads, or
/// else with short time slices. (A nice value alone has little effect if each session has a share
/// of its own, as on desktops.)
pub fn raise_thread_priority(ahead: Ahead) -> Priority {
    let first = scheduling(ahead as i32);
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads the structure, which lives until the call returns.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const first) } == 0 {
        return Priority::RealTime;
    }
    let own = rustix::process::getpriority_process(None).unwrap_or(0);
    let reached = [-20, -10, -5, own]
        .into_iter()
        .find(|&nice| run_in_short_turns(nice));
    Priority::Nice(reached.unwrap_or(own))
}

/// Gives the calling thread the ordinary priority again.
pub fn lower_thread_priority() {
    let ordinary = scheduling(0);
    // SAFETY: the kernel reads the structure, which lives until the call returns. It never refuses
    // the ordinary policy.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary) };
}

/// Only the priority counts for the kernel; musl's structure has more fields.
fn scheduling(priority: i32) -> libc::sched_param {
    // SAFETY: the structure holds numbers, of which all may be zero.
    let mut param: libc::sched_param = unsafe { mem::zeroed() };
    param.sched_priority = priority;
    param
}

/// Gives the calling thread the shortest time slices (Linux 6.12; on older kernels only the nice
/// value): among runnable threads, the one whose slice would end first runs first.
fn run_in_short_turns(nice: i32) -> bool {
    const SHORTEST_NS: u64 = 100_000;
    let attr = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SHORTEST_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads the structure, whose size it states, until the call returns.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) == 0 }
}
