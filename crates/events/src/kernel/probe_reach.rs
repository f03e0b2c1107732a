//! Probes reach every program that the sampled threads exec.
//!
//! The kernel writes the breakpoints of a probe into a program while it maps the program's files,
//! if an event of the probe belongs to that task. The task of an event is set when the event is
//! opened or inherited. When the CPU goes from a parent to its child, the kernel may swap the
//! contexts of both instead of switching them (`perf_event_context_sched_out` in
//! kernel/events/core.c): the parent continues with events that belong to the child. After the
//! child's death they belong to no task, and the next program that the parent execs gets no
//! breakpoints.
//!
//! ```text
//!   sh ── fork ── true          contexts swapped: sh has the events of true
//!    │             └─ exit      those events belong to no task
//!    └── exec ./program         no breakpoints
//! ```

use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as sys;
use prof_model::Tid;
use rustix::io::Errno;

use crate::kernel;
use crate::request::target_threads::MonitoredThreads;

/// Makes probes reach every program, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct ProbeReach {
    events: Vec<OwnedFd>,
    /// Whether the breakpoints are in all programs of the machine.
    is_everywhere: bool,
}

impl ProbeReach {
    /// Makes probes, each given by its attribute, reach all programs of these threads.
    pub(crate) fn extend(&mut self, threads: &[Tid], probes: &[sys::perf_event_attr]) {
        self.extend_by(threads, probes, pin);
    }

    fn extend_by(
        &mut self,
        threads: &[Tid],
        probes: &[sys::perf_event_attr],
        pin: impl Fn(Tid) -> Result<OwnedFd, Errno>,
    ) {
        if self.is_everywhere || probes.is_empty() {
            return;
        }
        for &thread in threads {
            match pin(thread) {
                Ok(event) => self.events.push(event),
                Err(Errno::INVAL) => {
                    self.is_everywhere = true;
                    let holding = probes.iter().filter_map(|probe| hold(*probe).ok());
                    self.events.extend(holding);
                    return;
                }
                // It has ended.
                Err(_) => {}
            }
        }
    }
}

/// An event that counts nothing, is inherited, and would read itself into samples, of which it has
/// none: contexts that hold such events are never swapped. Before Linux 6.13: EINVAL.
///
/// Only for probes: with a clock, to switch a context takes 8 µs, and to swap it 0.1.
fn pin(thread: Tid) -> Result<OwnedFd, Errno> {
    let mut attr = sys::perf_event_attr {
        size: crate::attr::perf_event_attr::ATTR_SIZE as u32,
        type_: sys::PERF_TYPE_SOFTWARE,
        config: sys::PERF_COUNT_SW_DUMMY.into(),
        sample_type: u64::from(sys::PERF_SAMPLE_READ | sys::PERF_SAMPLE_TID),
        ..Default::default()
    };
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    kernel::open(&mut attr, MonitoredThreads::Thread(thread), None, None)
}

/// A probe of all threads, which is never enabled: the breakpoints are written into all programs,
/// each of which becomes a little slower at them.
fn hold(mut probe: sys::perf_event_attr) -> Result<OwnedFd, Errno> {
    probe.set_inherit(0);
    probe.set_enable_on_exec(0);
    probe.set_disabled(1);
    let cpus = crate::system::online_cpus().map_err(|_| Errno::NODEV)?;
    let cpu = cpus.first().copied().ok_or(Errno::NODEV)?;
    kernel::open(&mut probe, MonitoredThreads::Everybody, Some(cpu), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::setup::tests::setup;

    #[test]
    fn probes_are_everywhere_where_contexts_cannot_be_pinned() {
        // Every user may open it for all threads, or none: how many are held does not matter here.
        let probe = setup("page-faults:u").attr();
        let own = rustix::thread::gettid().as_raw_pid();
        let mut reach = ProbeReach::default();
        reach.extend_by(&[own], &[], |_| Err(Errno::INVAL));
        assert!(!reach.is_everywhere);
        reach.extend_by(&[own], &[probe], |_| Err(Errno::SRCH));
        assert!(!reach.is_everywhere && reach.events.is_empty());
        reach.extend_by(&[own], &[probe], |_| Err(Errno::INVAL));
        assert!(reach.is_everywhere);
        assert_eq!(reach.events.len(), usize::from(hold(probe).is_ok()));
        reach.extend_by(&[own], &[probe], |_| {
            unreachable!("nothing to pin any more")
        });
    }
}
