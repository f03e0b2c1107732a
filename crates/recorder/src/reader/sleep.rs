//! The reader's sleep between two passes: how long it is, and what ends it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::{Opened, Wake, current_cpu, system};
use prof_perfdata::Sample;

use crate::queue::record_queue::RecordQueue;
use crate::reader::wakeup::{Sleep, SleepReason, WakeupPolicy};
use crate::source::Source;
use crate::summary::Wakeups;

/// Sleeps as the policy says, and counts why.
pub(super) struct ReaderSleep {
    pub(super) policy: WakeupPolicy,
    /// Whether the next sample ends it.
    pub(super) until_sample: bool,
    pub(super) last: LastSleep,
    /// When the reader last woke.
    woke: Instant,
    pub(super) wakeups: Wakeups,
}

/// The reader's sleep before this pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSleep {
    /// By the clock of the records.
    began: u64,
}

impl ReaderSleep {
    /// Percent of the queue: from here on the session cannot be sure to keep up.
    const MANY: usize = 25;

    pub(super) fn new(opened: &Opened, poll_interval: Option<Duration>) -> Self {
        Self {
            policy: WakeupPolicy::new(opened, poll_interval, Instant::now()),
            until_sample: true,
            last: LastSleep::begin(),
            woke: Instant::now(),
            wakeups: Wakeups::default(),
        }
    }

    /// Sleeps until there is something to do, or `timeout` is over. `wants_each` is whether each
    /// sample ends it, whatever the policy says.
    pub(super) fn wait(
        &mut self,
        source: &mut Source,
        queue: &RecordQueue,
        timeout: Duration,
        wants_each: bool,
    ) -> io::Result<Wake> {
        self.policy.learn(queue.take_feedback());
        let lags = queue.percent_full() >= Self::MANY;
        let (sleep, reason) = self.policy.sleep(Instant::now(), lags);
        self.count(reason);
        let (each, longest) = match sleep {
            Sleep::UntilSample(longest) => (true, longest),
            Sleep::For(longest) => (false, longest),
        };
        self.until_sample = each;
        source.signal_each_overflow(each || wants_each)?;
        self.last = LastSleep::begin();
        let wake = source.wait(longest.min(timeout))?;
        if each || wants_each {
            thread::sleep(self.policy.gather(self.woke, Instant::now()));
        }
        self.woke = Instant::now();
        Ok(wake)
    }

    /// Counts a sleep where its reason says.
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

impl LastSleep {
    /// From a sample to the reader's turn, in nanoseconds, where it takes the CPU at once: twice as
    /// long as in a virtual machine.
    const AT_ONCE: u64 = 300_000;

    /// It begins.
    pub(super) fn begin() -> Self {
        let began = system::monotonic_now();
        Self { began }
    }

    /// Whether the sample woke the reader on the thread's own CPU, where the thread waits until the
    /// reader is done.
    pub(super) fn ended_by(self, sample: &Sample<'_>) -> bool {
        let (Some(time), Some(cpu)) = (sample.time, sample.cpu) else {
            return false;
        };
        time > self.began
            && cpu == current_cpu()
            && system::monotonic_now().saturating_sub(time) < Self::AT_ONCE
    }
}
