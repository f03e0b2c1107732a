//! The reader's sleep between two passes: how long it is, and what ends it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::{Opened, SampleSignal, Wake};

use crate::queue::record_queue::RecordQueue;
use crate::reader::wakeup::{Sleep, SleepReason, WakeupPolicy};
use crate::reader::watchers::{WatcherDuty, Watchers};
use crate::source::Source;
use crate::summary::Wakeups;

/// Sleeps as the policy says, and counts the reasons.
pub(super) struct ReaderSleep {
    pub(super) policy: WakeupPolicy,
    /// Whether watchers read samples, of which the newest may still be in the rings.
    pub(super) races_watchers: bool,
    /// When the reader last woke.
    woke: Instant,
    pub(super) wakeups: Wakeups,
}

/// The next sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepPlan {
    /// Whether the next sample ends it, unless watchers do what it would be for.
    each: bool,
    /// Whether the next sample ends it in any case.
    wants_each: bool,
    longest: Duration,
    /// What watchers read meanwhile.
    pub(super) tails: bool,
    interpreted: bool,
}

impl SleepPlan {
    /// The same for at most this long.
    pub(super) fn at_most(self, timeout: Duration) -> Self {
        Self {
            longest: self.longest.min(timeout),
            ..self
        }
    }

    /// The same, but each sample ends it if that is `wanted`.
    pub(super) fn or_each_if(self, wanted: bool) -> Self {
        Self {
            wants_each: wanted,
            ..self
        }
    }
}

impl ReaderSleep {
    /// Percent of the queue from which the session may not keep up.
    const MANY: usize = 25;
    /// Percent of the queue from which other reads of the target wait, too, as those of stacks do.
    const TOO_MANY: usize = 50;

    pub(super) fn new(opened: &Opened, poll_interval: Option<Duration>) -> Self {
        Self {
            policy: WakeupPolicy::new(opened, poll_interval, Instant::now()),
            races_watchers: false,
            woke: Instant::now(),
            wakeups: Wakeups::default(),
        }
    }

    /// Decides about the next sleep, with the news of the session.
    pub(super) fn plan(&mut self, queue: &RecordQueue, has_interpreters: bool) -> SleepPlan {
        let (now, full) = (Instant::now(), queue.percent_full());
        self.policy.learn(queue.take_feedback(), now);
        if has_interpreters {
            self.policy.have_interpreters();
        }
        let (sleep, reason) = self.policy.sleep(now, full >= Self::MANY);
        self.count(reason);
        let (each, longest) = match sleep {
            Sleep::UntilSample(longest) => (true, longest),
            Sleep::For(longest) => (false, longest),
        };
        SleepPlan {
            each,
            wants_each: false,
            longest,
            tails: self.policy.reads_tails(reason),
            interpreted: full < Self::TOO_MANY && self.policy.reads_interpreted(now),
        }
    }

    /// Sleeps until there is something to do, or the planned time has passed. The watchers wake for
    /// each sample if that is worth it.
    pub(super) fn wait(
        &mut self,
        plan: SleepPlan,
        source: &mut Source,
        watchers: Option<&Watchers>,
    ) -> io::Result<Wake> {
        let watch = watchers.is_some() && (plan.tails || plan.interpreted);
        // What each sample would wake this thread for, watchers read.
        let each = plan.wants_each || plan.each && !(watch && plan.tails);
        let signals = each && self.policy.can_signal();
        self.races_watchers = watch;
        source.signal_each_overflow(match (signals, watch) {
            (true, _) => SampleSignal::All,
            (false, true) => SampleSignal::Watches,
            (false, false) => SampleSignal::Off,
        })?;
        if let Some(watchers) = watchers {
            watchers.set_duty(WatcherDuty {
                read_tails: plan.tails,
                forward: signals,
            });
        }
        let wake = source.wait(plan.longest)?;
        if let Some(watchers) = watchers {
            watchers.clear();
        }
        if each {
            thread::sleep(self.policy.gather(self.woke, Instant::now(), watch));
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
