//! CPU time of other processes.

use std::mem;

use prof_model::Pid;

/// The CPU time that all threads of a process have used up to this moment, in nanoseconds; `None`
/// if there is no such process.
///
/// Source: clock_getcpuclockid(3).
pub fn cpu_time_of(pid: Pid) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: a structure of numbers, of which all may be zero.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: both write to where they may: variables of ours of the right types.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let (seconds, nanos) = (time.tv_sec as u64, time.tv_nsec as u64);
    known.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_passes_while_a_process_runs() {
        let own = std::process::id().cast_signed();
        let before = cpu_time_of(own).expect("there is this process");
        let mut now = before;
        while now == before {
            now = cpu_time_of(own).expect("there is this process");
        }
        // PID_MAX_LIMIT: all numbers of processes are smaller.
        assert_eq!(cpu_time_of(1 << 22), None);
    }
}
