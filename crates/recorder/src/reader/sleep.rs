//! The reader's sleep between two passes: how long it is, and what ends it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::{Opened, Wake};

use crate::queue::record_queue::RecordQueue;
use crate::reader::last_sleep::LastSleep;
use crate::reader::python_threads::PythonThreads;
use crate::reader::wakeup::{Sleep, SleepReason, WakeupPolicy};
use crate::source::Source;
use crate::summary::Wakeups;

/// Sleeps as the policy says, and counts the reasons.
pub(super) struct ReaderSleep {
    pub(super) policy: WakeupPolicy,
    /// Whether the next sample ends it.
    pub(super) until_sample: bool,
    pub(super) last: LastSleep,
    /// When the reader last woke.
    woke: Instant,
    pub(super) wakeups: Wakeups,
}

impl ReaderSleep {
    /// Percent of the queue from which the session may not keep up.
    const MANY: usize = 25;
    /// Percent of the queue from which other reads of the target wait, too, as those of stacks do.
    const TOO_MANY: usize = 50;

    pub(super) fn new(opened: &Opened, poll_interval: Option<Duration>) -> Self {
        Self {
            policy: WakeupPolicy::new(opened, poll_interval, Instant::now()),
            until_sample: true,
            last: LastSleep::begin(),
            woke: Instant::now(),
            wakeups: Wakeups::default(),
        }
    }

    /// Sleeps until there is something to do, or for `timeout`. `wants_each` says that each sample
    /// ends it, whatever the policy says. The threads that read Python frames wake for each sample
    /// if that is worth it.
    pub(super) fn wait(
        &mut self,
        source: &mut Source,
        (queue, python): (&RecordQueue, Option<&PythonThreads>),
        timeout: Duration,
        wants_each: bool,
    ) -> io::Result<Wake> {
        self.policy.learn(queue.take_feedback());
        let full = queue.percent_full();
        let (sleep, reason) = self.policy.sleep(Instant::now(), full >= Self::MANY);
        self.count(reason);
        let (each, longest) = match sleep {
            Sleep::UntilSample(longest) => (true, longest),
            Sleep::For(longest) => (false, longest),
        };
        self.until_sample = each;
        let each = each || wants_each;
        let reads_python =
            python.is_some() && full < Self::TOO_MANY && self.policy.reads_python(Instant::now());
        source.signal_each_overflow(each || reads_python)?;
        if let Some(python) = python {
            python.forward(each);
        }
        self.last = LastSleep::begin();
        let wake = source.wait(longest.min(timeout))?;
        if let Some(python) = python {
            python.clear();
        }
        if each {
            thread::sleep(self.policy.gather(self.woke, Instant::now()));
        }
        self.woke = Instant::now();
        Ok(wake)
    }

    /// Counts a sleep by its reason.
    fn count(&mut self, reason: SleepReason) {
        let wakeups = &mut self.wakeups;
        let counter = match reason {
            SleepReason::Start => &mut wakeups.at_start,
            SleepReason::ChangingTails => &mut wakeups.changing_tails,
            SleepReason::DeepTails => &mut wakeups.deep_tails,
            SleepReason::Lag => &mut wakeups.lag,
            SleepReason::Quiet => &mut wakeups.quiet,
            SleepReason::Changes => &mut wakeups.changes,
            SleepReason::Steady => &mut wakeups.steady,
        };
        *counter += 1;
    }
}
