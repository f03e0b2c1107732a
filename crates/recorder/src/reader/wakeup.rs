//! When the reader wakes.
//!
//! ```text
//!   stacks                         the reader wakes                     wakeups a second, at 99 Hz
//!   fit in the dump                when a ring is half full             2
//!   are deeper, and change         when a ring is half full; a          2
//!                                  watcher with each sample             99
//!   are deeper, do not change      every 5 ms; below 200 Hz as if       2
//!                                  they changed                         99
//!   of interpreters                as above; a watcher with each        2
//!                                  sample                               99
//!   of waits in them, if no        every 5 ms, or every 25 ms
//!   watcher can read them: the     if there are few
//!   session does                                                        40
//! ```
//! The tail of a stack must be read before the program changes it. Each wakeup of a
//! [watcher](crate::reader::watchers) costs the program more than the sample itself, so it must be
//! worth it: one sample in [`StackEvidence::WORTH`] must need it.
//!
//! If processes come and go, or map code, their files must be opened while they exist. So the
//! reader wakes soon after such a record, and less and less often the longer there is none. If
//! little is sampled, only the next sample wakes it.
//!
//! Recordings that run for days have one interval instead
//! ([`ResourceLimits`](crate::ResourceLimits)).

use std::time::{Duration, Instant};

use prof_events::Opened;

use crate::queue::feedback::Feedback;
use crate::reader::stack_evidence::StackEvidence;

/// Decides how long the reader sleeps.
#[derive(Debug)]
pub(crate) struct WakeupPolicy {
    /// Whether the kernel can signal each sample.
    can_signal: bool,
    /// The interval, if it is fixed.
    poll_interval: Option<Duration>,
    rates: EventRates,
    stacks: StackEvidence,
    /// When the session last had a wait in an interpreter that no watcher has read.
    last_unread_wait: Option<Instant>,
    /// Whether a thread had blocked by the last pass, or may have.
    has_blocked: bool,
    /// When processes, threads or mappings changed.
    last_change: Instant,
    last_sample: Instant,
}

/// How often the events are sampled, and so how long to wait for them.
#[derive(Debug)]
struct EventRates {
    /// Without a sample for this long, the reader waits for the next one.
    quiet_after: Duration,
    /// The least time between two wakeups if the rate of samples is unknown.
    shortest: Duration,
    /// Whether samples are rarer than wakeups every [`WakeupPolicy::SHORT`] would be.
    is_rare: bool,
}

/// The findings of one pass over the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassSummary {
    pub(crate) samples: u32,
    /// Whether one of the stacks filled its dump.
    pub(crate) full_copies: bool,
    /// Whether processes, threads or mappings changed.
    pub(crate) changes: bool,
    /// Whether a process has mapped an interpreter.
    pub(crate) interpreters: bool,
    /// Samples whose stack tails may not be read.
    pub(crate) refused: u32,
    /// Whether a thread has blocked whose stack this thread reads.
    pub(crate) blocked: bool,
}

/// How long to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Until the next sample, but at most this long.
    UntilSample(Duration),
    /// Sleep this long, unless a ring reaches its watermark before.
    For(Duration),
}

/// The reason for the length of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepReason {
    /// Nothing is known of the program's stacks yet.
    Start,
    /// Stack tails change.
    ChangingTails,
    /// Stacks are deeper than their dumps.
    DeepTails,
    /// Stack tails change, but the session lags behind.
    Lag,
    /// Nothing is sampled.
    Quiet,
    /// Processes or mappings have changed lately.
    Changes,
    /// Nothing is urgent.
    Steady,
}

impl EventRates {
    /// Enabling and disabling the signal takes up to four calls for each event: much longer must
    /// pass without a sample.
    const QUIET_PER_EVENT: Duration = Duration::from_micros(100);
    const QUIET_AFTER: Duration = Duration::from_millis(20);
    /// The least time between wakeups at an unknown rate.
    const SHORTEST: Duration = Duration::from_micros(200);

    fn new(opened: &Opened) -> Self {
        let rates: Vec<_> = (opened.events.iter())
            .map(|event| event.setup.highest_rate())
            .collect();
        let events = u32::try_from(opened.ids().count()).unwrap_or(u32::MAX);
        let toggling = Self::QUIET_PER_EVENT.saturating_mul(events);
        Self {
            quiet_after: toggling.clamp(Self::QUIET_AFTER, WakeupPolicy::QUIET),
            shortest: match rates.iter().all(Option::is_some) {
                true => Duration::ZERO,
                false => Self::SHORTEST,
            },
            is_rare: rates.iter().all(|rate| rate.is_some_and(Self::is_rare)),
        }
    }

    /// Whether so many samples a second are fewer than wakeups every [`WakeupPolicy::SHORT`].
    fn is_rare(rate: u64) -> bool {
        u128::from(rate) * WakeupPolicy::SHORT.as_nanos() < 1_000_000_000
    }
}

impl WakeupPolicy {
    /// The sleep if stacks are deep and do not change, or after changes of processes.
    const SHORT: Duration = Duration::from_millis(5);
    /// The sleep until a ring fills.
    const LONG: Duration = Duration::from_millis(500);
    /// The sleep if nothing is sampled.
    const QUIET: Duration = Duration::from_secs(1);
    /// The sleep if there are waits in interpreters that no watcher reads, and for how long after
    /// one.
    const UNREAD_WAITS: Duration = Duration::from_millis(25);
    const AFTER_UNREAD_WAIT: Duration = Duration::from_secs(2);

    pub(crate) fn new(opened: &Opened, poll_interval: Option<Duration>, now: Instant) -> Self {
        Self {
            can_signal: opened.can_signal_each_overflow(),
            poll_interval,
            rates: EventRates::new(opened),
            stacks: StackEvidence::default(),
            last_unread_wait: None,
            has_blocked: true,
            last_change: now,
            last_sample: now,
        }
    }

    /// The reader has made a pass over the rings.
    pub(crate) fn pass_ended(&mut self, pass: PassSummary, now: Instant) {
        (self.stacks).found(pass.samples, pass.refused, pass.full_copies);
        self.has_blocked = pass.blocked;
        if pass.samples > 0 {
            self.last_sample = now;
        }
        if pass.changes {
            self.changed(now);
        }
        if pass.interpreters {
            self.stacks.expect_interpreted();
        }
    }

    /// Processes have changed, or records in the rings are needed soon.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.last_change = now;
    }

    /// The session has unwound samples.
    pub(crate) fn learn(&mut self, feedback: Feedback, now: Instant) {
        self.stacks.learn(feedback);
        if feedback.unread_waits > 0 {
            self.last_unread_wait = Some(now);
        }
    }

    /// How long to sleep now, and why. If the session `lags`, the time for wakeups is better spent
    /// there.
    pub(crate) fn sleep(&self, now: Instant, lags: bool) -> (Sleep, SleepReason) {
        if let Some(interval) = self.poll_interval {
            return (Sleep::For(interval), SleepReason::Steady);
        }
        let since_change = now.duration_since(self.last_change);
        let longest = self.longest_for_waits(now).unwrap_or(Self::LONG);
        let settled = (since_change / 2).clamp(Self::SHORT, longest);
        let calm = match settled < Self::LONG {
            true => (Sleep::For(settled), SleepReason::Changes),
            false => (Sleep::For(settled), SleepReason::Steady),
        };
        let quiet = self.is_quiet(now);
        if !self.can_signal {
            return calm;
        }
        if quiet {
            return (Sleep::UntilSample(Self::QUIET), SleepReason::Quiet);
        }
        let urgent = match (self.stacks.is_at_first(), self.stacks.tails_change()) {
            (true, _) => Some(SleepReason::Start),
            (_, true) => Some(SleepReason::ChangingTails),
            _ => None,
        };
        match urgent {
            Some(_) if lags => (Sleep::For(Self::SHORT), SleepReason::Lag),
            Some(reason) => (Sleep::UntilSample(settled), reason),
            None if self.stacks.are_deep() => {
                let sleep = match self.rates.is_rare {
                    true => Sleep::UntilSample(settled),
                    false => Sleep::For(Self::SHORT),
                };
                (sleep, SleepReason::DeepTails)
            }
            None => calm,
        }
    }

    /// There are interpreters.
    pub(crate) fn have_interpreters(&mut self) {
        self.stacks.have_interpreters();
    }

    fn is_quiet(&self, now: Instant) -> bool {
        now.duration_since(self.last_sample) >= self.rates.quiet_after
    }

    /// Whether interpreted frames should be read with each sample.
    pub(crate) fn reads_interpreted(&self, now: Instant) -> bool {
        // At the low rates of recordings that run for days, there is a pause after each sample.
        let is_quiet = self.poll_interval.is_none() && self.is_quiet(now);
        is_quiet || self.stacks.is_at_first() || self.stacks.have_interpreted()
    }

    /// Whether stack tails should be read with each sample, given the reason for a sleep.
    pub(crate) fn reads_tails(&self, reason: SleepReason) -> bool {
        match reason {
            SleepReason::ChangingTails => true,
            SleepReason::Start => self.stacks.has_full_copies(),
            SleepReason::DeepTails => self.rates.is_rare,
            _ => false,
        }
    }

    /// Whether the kernel signals samples to the reader: otherwise each record wakes it, or none.
    pub(crate) fn can_signal(&self) -> bool {
        self.can_signal
    }

    /// The least time between two wakeups by samples.
    pub(crate) fn shortest(&self) -> Duration {
        self.rates.shortest
    }

    /// How long to let samples accumulate, of which the first has woken the reader at `now`, after
    /// a last pass at `last`.
    ///
    /// If watchers read samples and each record wakes this thread, too, it stays out of their way
    /// while no thread blocks: it takes the CPU of a sampled thread, which is a record again.
    pub(crate) fn gather(&self, last: Instant, now: Instant, watch: bool) -> Duration {
        let shortest = match watch && !self.can_signal && !self.has_blocked {
            true => Self::SHORT,
            false => self.rates.shortest,
        };
        shortest.saturating_sub(now.duration_since(last))
    }

    /// Whether the session should unwind the samples of a pass at once: files may go away, second
    /// stacks, which it reads itself, may end, or its feedback is needed.
    pub(crate) fn unwinds_at_once(&self, pass: PassSummary, now: Instant) -> bool {
        let unknown = pass.full_copies && self.stacks.is_open();
        let changed = now.duration_since(self.last_change) < Self::LONG;
        let other_stacks = self.stacks.continue_on_others();
        self.poll_interval.is_none()
            && (unknown || changed || other_stacks || self.longest_for_waits(now).is_some())
    }

    /// The longest sleep if the session reads the interpreted functions of waits: while these last.
    fn longest_for_waits(&self, now: Instant) -> Option<Duration> {
        let last = self.last_unread_wait.filter(|_| !self.can_signal)?;
        let is_recent = now.duration_since(last) < Self::AFTER_UNREAD_WAIT;
        is_recent.then(|| match self.stacks.have_unread_waits() {
            true => Self::SHORT,
            false => Self::UNREAD_WAITS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Reader {
        policy: WakeupPolicy,
        now: Instant,
    }

    impl Reader {
        fn new() -> Self {
            let now = Instant::now();
            let policy = WakeupPolicy {
                can_signal: true,
                poll_interval: None,
                rates: EventRates {
                    quiet_after: EventRates::QUIET_AFTER,
                    shortest: Duration::ZERO,
                    is_rare: false,
                },
                stacks: StackEvidence::default(),
                last_unread_wait: None,
                has_blocked: true,
                last_change: now,
                last_sample: now,
            };
            Self { policy, now }
        }

        /// Sleeps, then finds this many samples, with the session's feedback on them.
        fn pass(&mut self, samples: u32, deep: u32, changed: u32) -> Sleep {
            let (sleep, _) = self.policy.sleep(self.now, false);
            let (Sleep::For(time) | Sleep::UntilSample(time)) = sleep;
            self.now += time;
            let pass = PassSummary {
                samples,
                full_copies: deep > 0,
                ..PassSummary::default()
            };
            self.policy.pass_ended(pass, self.now);
            self.policy.learn(
                Feedback {
                    unwound: samples,
                    deep,
                    changed,
                    ..Feedback::default()
                },
                self.now,
            );
            self.policy.sleep(self.now, false).0
        }

        fn passes(&mut self, count: u32, samples: u32, deep: u32, changed: u32) -> Sleep {
            (1..count).for_each(|_| _ = self.pass(samples, deep, changed));
            self.pass(samples, deep, changed)
        }
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn complete_dumps_do_not_wake_the_reader() {
        let mut reader = Reader::new();
        assert_eq!(reader.pass(1, 0, 0), Sleep::UntilSample(millis(5)));
        assert_eq!(reader.passes(31, 1, 0, 0), Sleep::For(millis(500)));
    }

    #[test]
    fn rare_deep_stacks_are_read_as_they_come() {
        let mut reader = Reader::new();
        reader.policy.rates.is_rare = true;
        reader.passes(100, 1, 0, 0);
        let sleep = reader.passes(100, 1, 1, 0);
        assert_eq!(sleep, Sleep::UntilSample(millis(500)));
        assert!(reader.policy.reads_tails(SleepReason::DeepTails));
    }

    #[test]
    fn deep_stacks_are_read_only_if_it_helps() {
        let mut reader = Reader::new();
        reader.passes(100, 1, 0, 0);
        assert_eq!(reader.passes(100, 50, 0, 0), Sleep::For(millis(500)));
        // Five of 12,000, as for a compiler.
        assert_eq!(reader.pass(50, 1, 1), Sleep::For(millis(500)));
        assert_eq!(reader.passes(50, 50, 0, 0), Sleep::For(millis(500)));
        // One in ten.
        let sleep = reader.passes(4, 50, 5, 0);
        assert_eq!(sleep, Sleep::For(millis(5)));
        let sleep = reader.passes(4, 50, 5, 5);
        assert_eq!(sleep, Sleep::UntilSample(millis(500)));
        let lagging = reader.policy.sleep(reader.now, true);
        assert_eq!(lagging, (Sleep::For(millis(5)), SleepReason::Lag));
        let sleep = reader.passes(200, 50, 0, 0);
        assert_eq!(sleep, Sleep::For(millis(500)), "no longer");
    }

    #[test]
    fn unreadable_memory_is_not_urgent() {
        let mut reader = Reader::new();
        reader.passes(40, 1, 0, 0);
        for _ in 0..100 {
            let pass = PassSummary {
                samples: 1,
                refused: 1,
                ..PassSummary::default()
            };
            reader.policy.pass_ended(pass, reader.now);
            let changed = Feedback {
                changed: 1,
                ..Feedback::default()
            };
            reader.policy.learn(changed, reader.now);
        }
        let reason = |reader: &Reader| reader.policy.sleep(reader.now, false).1;
        assert_eq!(reason(&reader), SleepReason::Steady);
        reader.pass(10, 10, 10);
        assert_eq!(reason(&reader), SleepReason::ChangingTails);
    }

    #[test]
    fn changes_are_followed_closely_and_then_less_and_less() {
        let mut reader = Reader::new();
        reader.passes(100, 1, 0, 0);
        let change = PassSummary {
            samples: 1,
            changes: true,
            ..PassSummary::default()
        };
        reader.policy.pass_ended(change, reader.now);
        let begin = reader.now;
        let mut wakeups = 0;
        while reader.now < begin + millis(2000) {
            let at_once = reader
                .policy
                .unwinds_at_once(PassSummary::default(), reader.now);
            assert_eq!(at_once, reader.now < begin + millis(500));
            reader.pass(1, 0, 0);
            wakeups += 1;
        }
        assert!((8..20).contains(&wakeups), "{wakeups}");
    }

    #[test]
    fn a_fixed_interval_does_not_change() {
        let mut reader = Reader::new();
        reader.policy.poll_interval = Some(millis(100));
        let change = PassSummary {
            samples: 1,
            full_copies: true,
            changes: true,
            ..PassSummary::default()
        };
        reader.policy.pass_ended(change, reader.now);
        assert!(!reader.policy.unwinds_at_once(change, reader.now));
        for samples in [50, 1, 0] {
            let sleep = reader.passes(50, samples, samples, samples);
            assert_eq!(sleep, Sleep::For(millis(100)));
        }
    }

    #[test]
    fn interpreted_frames_are_read_only_if_it_helps() {
        let mut reader = Reader::new();
        assert!(reader.policy.reads_interpreted(reader.now));
        reader.passes(100, 1, 0, 0);
        assert!(!reader.policy.reads_interpreted(reader.now));
        let interpreter = PassSummary {
            interpreters: true,
            ..PassSummary::default()
        };
        reader.policy.pass_ended(interpreter, reader.now);
        assert!(reader.policy.reads_interpreted(reader.now));
        reader.passes(100, 100, 0, 0);
        assert!(!reader.policy.reads_interpreted(reader.now));
        let interpreted = Feedback {
            interpreted: 10,
            ..Feedback::default()
        };
        reader.policy.learn(interpreted, reader.now);
        assert!(reader.policy.reads_interpreted(reader.now));
        assert_eq!(reader.pass(1, 0, 0), Sleep::For(millis(500)), "others read");
    }

    #[test]
    fn waits_of_interpreters_that_no_watcher_reads_are_passed_on_soon() {
        for (unread_waits, expected) in [(0, 500), (1, 25), (10, 5)] {
            let mut reader = Reader::new();
            reader.policy.can_signal = false;
            reader.passes(100, 10, 0, 0);
            let waits = Feedback {
                unread_waits,
                ..Feedback::default()
            };
            reader.policy.learn(waits, reader.now);
            let sleep = |reader: &Reader| reader.policy.sleep(reader.now, false).0;
            assert_eq!(sleep(&reader), Sleep::For(millis(expected)));
            let at_once = reader
                .policy
                .unwinds_at_once(PassSummary::default(), reader.now);
            assert_eq!(at_once, expected < 500);
            reader.now += WakeupPolicy::AFTER_UNREAD_WAIT;
            assert_eq!(sleep(&reader), Sleep::For(millis(500)));
        }
    }

    #[test]
    fn second_stacks_are_unwound_at_once() {
        for (other_stacks, expected) in [(0, false), (1, false), (10, true)] {
            let mut reader = Reader::new();
            reader.passes(1000, 1, 1, 0);
            let second = Feedback {
                other_stacks,
                ..Feedback::default()
            };
            reader.policy.learn(second, reader.now);
            let at_once = reader
                .policy
                .unwinds_at_once(PassSummary::default(), reader.now);
            assert_eq!(at_once, expected, "{other_stacks}");
        }
    }

    #[test]
    fn where_nothing_is_sampled_the_next_sample_wakes() {
        let mut reader = Reader::new();
        reader.passes(100, 1, 0, 0);
        assert_eq!(reader.pass(0, 0, 0), Sleep::UntilSample(millis(1000)));
        assert_eq!(reader.pass(1, 0, 0), Sleep::For(millis(500)));
        // Changes are not urgent before the target is sampled.
        reader.policy.changed(reader.now);
        assert_eq!(reader.pass(1, 0, 0), Sleep::For(millis(5)));
        assert_eq!(reader.passes(4, 0, 0, 0), Sleep::UntilSample(millis(1000)));
    }
}
