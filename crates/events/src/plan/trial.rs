//! Events opened only to see whether they open.

use perf_event_open_sys::bindings as sys;
use prof_model::Tid;
use rustix::io::Errno;

use crate::kernel;
use crate::request::target_threads::MonitoredThreads;

/// Permissions, each tried by opening the simplest event that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Sampling user code of one's own threads, by a clock.
    UserCode,
    /// Sampling the kernel on behalf of one's own threads, by a clock.
    KernelCode,
    /// Anything at all in this thread, by an event that counts nothing.
    Thread(Tid),
    /// Sampling all that happens on this CPU, by a clock.
    WholeCpu(u32),
    /// Sampling one's own user code by CPU cycles: there is a PMU.
    Cycles,
    /// Recording the last branches with each sample (LBR, BRBE).
    Branches,
}

impl Trial {
    /// Opens the event and closes it again.
    ///
    /// # Errors
    ///
    /// The kernel's error (perf_event_open(2)).
    pub fn run(self) -> Result<(), Errno> {
        let (monitored, cpu) = match self {
            Self::WholeCpu(cpu) => (MonitoredThreads::Everybody, Some(cpu)),
            Self::Thread(tid) => (MonitoredThreads::Thread(tid), None),
            _ => (MonitoredThreads::CALLER, None),
        };
        kernel::open(&mut self.attr(), monitored, cpu, None).map(drop)
    }

    fn attr(self) -> sys::perf_event_attr {
        let mut attr = sys::perf_event_attr {
            size: crate::attr::perf_event_attr::ATTR_SIZE as u32,
            sample_type: sys::PERF_SAMPLE_IP as u64,
            ..Default::default()
        };
        // So rarely that no sample comes before we close it.
        attr.__bindgen_anon_1.sample_period = 1 << 40;
        attr.set_disabled(1);
        attr.set_exclude_hv(1);
        (attr.type_, attr.config) = match self {
            Self::Cycles | Self::Branches => (
                sys::PERF_TYPE_HARDWARE,
                sys::PERF_COUNT_HW_CPU_CYCLES as u64,
            ),
            Self::Thread(_) => (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_DUMMY as u64),
            _ => (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK as u64),
        };
        let kernel = matches!(self, Self::KernelCode | Self::WholeCpu(_));
        attr.set_exclude_kernel((!kernel).into());
        if self == Self::Branches {
            attr.sample_type |= sys::PERF_SAMPLE_BRANCH_STACK as u64;
            attr.branch_sample_type =
                (sys::PERF_SAMPLE_BRANCH_USER | sys::PERF_SAMPLE_BRANCH_ANY) as u64;
        }
        attr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_as_it_does_to_samplers() {
        let paranoid = prof_procfs::settings::setting("kernel/perf_event_paranoid");
        let root = rustix::process::geteuid().is_root();
        if paranoid.is_some_and(|level| level <= 2) || root {
            assert_eq!(Trial::UserCode.run(), Ok(()));
            assert_eq!(Trial::Thread(0).run(), Ok(()));
        }
        assert_eq!(Trial::Thread(i32::MAX).run(), Err(Errno::SRCH));
        if root {
            assert_eq!(Trial::KernelCode.run(), Ok(()));
            assert_eq!(Trial::WholeCpu(0).run(), Ok(()));
            assert!(Trial::WholeCpu(1 << 20).run().is_err());
        }
        // No machine has branch records without counters.
        assert!(Trial::Branches.run().is_err() || Trial::Cycles.run().is_ok());
    }
}
