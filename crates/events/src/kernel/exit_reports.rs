//! Whether this kernel writes READ records as threads end (`inherit_stat`).
//!
//! From about 5.13 to 6.15 it does not: `perf_event_exit_task_context` forgets whose events they
//! are before they are read (kernel/events/core.c). So it is tried.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;

use crate::attr::setup::{Sampling, Setup};
use crate::kernel;
use crate::kernel::context_pin::ContextPin;
use crate::kernel::ring::Ring;
use crate::parsing::EventSpec;
use crate::system;

/// Whether there are such records. If it cannot be tried, there are.
pub(crate) fn are_there() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| thread::spawn(try_it).join().ok().flatten().unwrap_or(true))
}

/// Counts this thread and one that it starts and that ends.
fn try_it() -> Option<bool> {
    let setup = Setup::new(EventSpec::dummy(), Sampling::Never);
    let cpu = *system::online_cpus().ok()?.first()?;
    let own = rustix::thread::gettid().as_raw_pid();
    // Otherwise the thread that ends may have our event: the kernel exchanges the events of parent
    // and child where one follows the other on a CPU.
    let _pin = ContextPin::on(own).ok()?;
    let event = kernel::open_exit_counter(&setup, own, cpu, false).ok()?;
    let mut ring = Ring::map(event.as_fd(), rustix::param::page_size() as u64).ok()?;
    let child = thread::spawn(rustix::thread::gettid).join().ok()?;
    wait_until_gone(child.as_raw_pid())?;
    let mut found = false;
    ring.drain(|record| found |= record.starts_with(&sys::PERF_RECORD_READ.to_ne_bytes()));
    Some(found)
}

/// Waits until a thread that was joined leaves /proc: only then have the records of its end been
/// written. `None` if that takes too long.
pub(crate) fn wait_until_gone(thread: i32) -> Option<()> {
    const LONGEST: Duration = Duration::from_millis(200);
    let entry = format!("/proc/self/task/{thread}");
    let begin = Instant::now();
    while Path::new(&entry).exists() {
        if begin.elapsed() > LONGEST {
            return None;
        }
        thread::yield_now();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    /// As the exchange of contexts would make it.
    #[test]
    fn the_answer_does_not_depend_on_the_cpu() {
        let on_one_cpu = || {
            let mut cpus = CpuSet::new();
            cpus.set(rustix::thread::sched_getcpu());
            sched_setaffinity(None, &cpus).unwrap();
            try_it().unwrap()
        };
        let answers = |ask: fn() -> bool| -> Vec<bool> {
            let threads = (0..10).map(|_| thread::spawn(ask).join().unwrap());
            threads.collect()
        };
        let answers = [answers(on_one_cpu), answers(|| try_it().unwrap())].concat();
        assert!(answers.iter().all(|&it| it == answers[0]), "{answers:?}");
    }
}
