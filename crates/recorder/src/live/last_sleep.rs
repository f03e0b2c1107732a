//! Whether a sample ended the sleep of the thread that reads it, in the place of the sampled one.

use std::fs::File;

use prof_events::system::Priority;
use prof_events::{current_cpu, system};
use prof_model::{Pid, Tid};
use prof_perfdata::Sample;
use prof_procfs::{SchedStat, Task};

/// The last sleep of a thread that samples wake.
#[derive(Debug)]
pub(crate) struct LastSleep {
    /// Its start, by the clock of the records.
    began: u64,
    /// Whether the thread got the CPU the moment it woke.
    ran_at_once: bool,
    /// Whether the thread goes ahead of all ordinary threads: sched(7).
    is_real_time: bool,
    /// How the thread has shared the CPUs; `None` if the file cannot be opened.
    stat: Option<File>,
    /// The same when it woke.
    at_wakeup: Option<SchedStat>,
}

impl LastSleep {
    /// The longest time from a sample to the start of the thread that it wakes, in nanoseconds, if
    /// that gets the CPU at once: twice as long as in a virtual machine.
    const AT_ONCE: u64 = 300_000;

    /// The longest wait for a CPU, in nanoseconds, of a thread that preempts another when it wakes.
    /// The kernel takes the time once for both, so that it is 0, or twice with lazy preemption
    /// (kernel/sched/core.c, `wakeup_preempt`). The next chance is a tick, each 1 to 10 ms.
    const PREEMPTING: u64 = 2_000;

    /// Of the calling thread, which has this priority.
    pub(crate) fn of_this_thread(priority: Priority) -> Self {
        Self {
            began: system::monotonic_now(),
            ran_at_once: false,
            is_real_time: priority == Priority::RealTime,
            stat: Task::this_thread().open(SchedStat::FILE).ok(),
            at_wakeup: None,
        }
    }

    /// A sleep starts now.
    pub(crate) fn begin(&mut self) {
        self.began = system::monotonic_now();
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        let now = self.stat_now();
        let last = std::mem::replace(&mut self.at_wakeup, now);
        self.ran_at_once = self.is_real_time
            || now.zip(last).is_some_and(|(now, last)| {
                let waited = now.run_delay.saturating_sub(last.run_delay);
                now.timeslices == last.timeslices + 1 && waited <= Self::PREEMPTING
            });
    }

    /// Whether the sample woke this thread on its own CPU, where the sampled thread waits until
    /// this one is done, and has not run since.
    pub(crate) fn ended_by(&self, sample: &Sample<'_>) -> bool {
        let (Some(time), Some(cpu)) = (sample.time, sample.cpu) else {
            return false;
        };
        self.ran_at_once
            && time > self.began
            && cpu == current_cpu()
            && system::monotonic_now().saturating_sub(time) < Self::AT_ONCE
    }

    /// Whether a thread whose sample ended this sleep has not run since: another CPU has not taken
    /// it over, and this thread has not left the CPU to it.
    pub(crate) fn still_preempts(&self, pid: Pid, tid: Tid) -> bool {
        self.has_kept_cpu()
            && (Task::thread(pid, tid).stat())
                // A real-time thread may have gone on for a while before it was preempted.
                .is_ok_and(|stat| stat.cpu == current_cpu() && stat.has_ordinary_priority())
    }

    /// Whether the thread has had its CPU since it woke: it may have waited for a lock of the
    /// sampled process.
    fn has_kept_cpu(&self) -> bool {
        let now = self.stat_now().zip(self.at_wakeup);
        now.is_some_and(|(now, then)| now.timeslices == then.timeslices)
    }

    fn stat_now(&self) -> Option<SchedStat> {
        self.stat.as_ref().and_then(SchedStat::read_again)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// The calling thread waits for others in each round, and gives up its CPU.
    #[test]
    fn a_thread_that_waits_leaves_its_cpu() {
        let mut sleep = LastSleep::of_this_thread(Priority::RealTime);
        let mut keeps = || {
            sleep.end();
            sleep.has_kept_cpu()
        };
        while !keeps() {}
        while sleep.has_kept_cpu() {
            thread::spawn(thread::yield_now).join().expect("a thread");
        }
    }

    #[test]
    fn a_thread_that_runs_elsewhere_is_not_preempted() {
        let mut sleep = LastSleep::of_this_thread(Priority::RealTime);
        sleep.end();
        let nobody = i32::MAX;
        assert!(!sleep.still_preempts(nobody, nobody));
    }
}
