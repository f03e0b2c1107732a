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
    class: SchedulingClass,
}

/// How the kernel chooses when a thread runs, sched(7).
#[derive(Debug)]
enum SchedulingClass {
    /// Before all ordinary threads.
    RealTime,
    /// As one of these.
    Fair {
        /// Its own; `None` if it cannot be opened.
        stat: Option<File>,
        before: SchedStat,
    },
}

impl LastSleep {
    /// The longest time from a sample to the start of the thread that it wakes, in nanoseconds, if
    /// that gets the CPU at once: twice as long as in a virtual machine.
    const AT_ONCE: u64 = 300_000;

    /// Of the calling thread, which has this priority.
    pub(crate) fn of_this_thread(priority: Priority) -> Self {
        let class = match priority {
            Priority::RealTime => SchedulingClass::RealTime,
            Priority::Nice(_) => SchedulingClass::Fair {
                stat: Task::this_thread().open(SchedStat::FILE).ok(),
                before: SchedStat::default(),
            },
        };
        Self {
            began: system::monotonic_now(),
            ran_at_once: false,
            class,
        }
    }

    /// A sleep starts now.
    pub(crate) fn begin(&mut self) {
        self.began = system::monotonic_now();
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        self.ran_at_once = self.class.ran_at_once();
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
        self.class.has_kept_cpu()
            && (Task::thread(pid, tid).stat())
                // A thread of real time may have gone on for a while before it was preempted.
                .is_ok_and(|stat| stat.cpu == current_cpu() && stat.has_ordinary_priority())
    }
}

impl SchedulingClass {
    /// The longest wait for a CPU, in nanoseconds, of a thread that preempts another when it wakes.
    /// The kernel takes the time once for both, so that it is 0, or twice with lazy preemption
    /// (kernel/sched/core.c, `wakeup_preempt`). The next chance is a tick, each 1 to 10 ms.
    const PREEMPTING: u64 = 2_000;

    /// Whether the thread has got the CPU only once since this was last asked, and the moment it
    /// woke: the thread before it has not gone on.
    fn ran_at_once(&mut self) -> bool {
        let Self::Fair { stat, before } = self else {
            return true;
        };
        let now = stat.as_ref().and_then(SchedStat::read_again);
        let Some(now) = now else {
            return false;
        };
        let last = std::mem::replace(before, now);
        let waited = now.run_delay.saturating_sub(last.run_delay);
        now.timeslices == last.timeslices + 1 && waited <= Self::PREEMPTING
    }

    /// Whether the thread has not been preempted by an ordinary one since `ran_at_once`.
    fn has_kept_cpu(&self) -> bool {
        match self {
            Self::RealTime => true,
            Self::Fair { stat, before } => {
                let now = stat.as_ref().and_then(SchedStat::read_again);
                now.is_some_and(|now| now.timeslices == before.timeslices)
            }
        }
    }
}
