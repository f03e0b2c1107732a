//! Which CPUs a thread may run on.

use std::fmt;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that a thread may run on.
#[derive(Clone, Copy)]
pub struct AllowedCpus(CpuSet);

impl AllowedCpus {
    /// The CPUs of the calling thread; `None` on machines with more CPUs than a set can hold
    /// (1,024).
    pub fn of_this_thread() -> Option<Self> {
        sched_getaffinity(None).ok().map(Self)
    }

    /// Only this CPU, if it is in the set.
    pub fn only(&self, cpu: u32) -> Option<Self> {
        let cpu = usize::try_from(cpu).ok()?;
        if cpu >= CpuSet::MAX_CPU || !self.0.is_set(cpu) {
            return None;
        }
        let mut only = CpuSet::new();
        only.set(cpu);
        Some(Self(only))
    }

    /// Restricts the calling thread to these CPUs. Returns whether the system allows it.
    pub fn run_there(&self) -> bool {
        sched_setaffinity(None, &self.0).is_ok()
    }
}

/// The CPU that the calling thread runs on; it may be on another one right after.
pub fn current_cpu() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

impl fmt::Debug for AllowedCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu));
        f.debug_list().entries(cpus).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_where_it_is_sent_and_no_further() {
        let home = AllowedCpus::of_this_thread().expect("fewer than 1,025 CPUs");
        let cpu = current_cpu();
        let here = home.only(cpu).expect("where it runs it may");
        assert!(here.run_there());
        let now = AllowedCpus::of_this_thread().map(|cpus| format!("{cpus:?}"));
        assert_eq!(now, Some(format!("[{cpu}]")));
        assert!(here.only(cpu + 1).is_none());
        assert!(home.only(u32::MAX).is_none());
        assert!(home.run_there());
    }
}
