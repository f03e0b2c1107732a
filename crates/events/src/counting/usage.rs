//! The kernel's accounting of ended processes: times, faults, switches.

use std::mem::MaybeUninit;
use std::time::Duration;

/// The resource usage of processes (getrusage(2)), kernel code included, whatever
/// `perf_event_paranoid` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user code.
    pub user: Duration,
    /// Time in kernel code.
    pub system: Duration,
    /// Page faults that were served without I/O.
    pub minor_faults: u64,
    /// Page faults that took I/O.
    pub major_faults: u64,
    /// Switches to other threads, voluntary and forced.
    pub context_switches: u64,
}

impl Usage {
    /// The usage of our children that have ended and were waited for, and of theirs.
    pub fn of_children() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills in the structure, which is plain integers, and all zeros is
        // valid should it refuse.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
            usage.assume_init()
        };
        let number = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        let time = |time: libc::timeval| {
            Duration::from_secs(number(time.tv_sec)) + Duration::from_micros(number(time.tv_usec))
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            minor_faults: number(usage.ru_minflt),
            major_faults: number(usage.ru_majflt),
            context_switches: number(usage.ru_nvcsw) + number(usage.ru_nivcsw),
        }
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            context_switches: self
                .context_switches
                .saturating_sub(earlier.context_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_uses_something() {
        let before = Usage::of_children();
        std::process::Command::new("true").status().unwrap();
        let used = Usage::of_children().since(before);
        assert!(used.minor_faults > 0, "{used:?}");
        assert!(
            used.context_switches > 0 || used.user + used.system > Duration::ZERO,
            "{used:?}"
        );
    }
}
