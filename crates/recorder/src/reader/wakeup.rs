//! How soon the reader must look at a sample.
//!
//! What lies beyond the kernel's copy of a stack must be read before the program changes it, so the
//! reader is told of each sample. That costs the program more than the sample itself, and most
//! programs' stacks are never that deep, or change so far out. So the reader looks by itself now and
//! then, as long as no stack needed it sooner for a while.

use std::time::{Duration, Instant};

use prof_events::Opened;

/// Whether there is time for a nap.
#[derive(Debug)]
pub(crate) struct WakeupPolicy {
    /// `None`: samples may come faster than the rings could hold.
    poll_interval: Option<Duration>,
    /// In haste until then.
    until: Instant,
    /// How long to be in haste after a stack that needed it.
    lasts: Duration,
}

impl WakeupPolicy {
    /// Short beside what changes while nobody looks: names, mappings, processes.
    const LONGEST_NAP: Duration = Duration::from_millis(5);
    const AT_FIRST: Duration = Duration::from_millis(250);
    /// Doubled each time that it was too short, up to this, so that stacks which are deep now and
    /// then are not missed each time.
    const LONGEST: Duration = Duration::from_secs(64);

    /// In no haste as yet.
    pub(crate) fn new(opened: &Opened, now: Instant) -> Self {
        Self {
            poll_interval: poll_interval(opened),
            until: now,
            lasts: Duration::ZERO,
        }
    }

    /// Something had to be read from the live target.
    pub(crate) fn needed(&mut self, now: Instant) {
        if now > self.until {
            self.lasts = (self.lasts * 2).clamp(Self::AT_FIRST, Self::LONGEST);
        }
        self.until = now + self.lasts;
    }

    /// How long to let samples come together; `None` if the next must be looked at as soon as it
    /// comes. Not where there are `many` to be unwound as yet: what being told takes is better spent
    /// on that.
    pub(crate) fn poll_interval(&self, now: Instant, many: bool) -> Option<Duration> {
        self.poll_interval.filter(|_| many || now > self.until)
    }
}

/// Whether to be told of samples while there is time for naps. That spares looking when none come. To go
/// on or off takes a call for each event, which costs about a sixth of what it does to be told of a sample.
#[derive(Debug)]
pub(crate) struct OverflowSignalPolicy {
    events: usize,
    /// Samples of passes in a row that brought several.
    samples: usize,
}

impl OverflowSignalPolicy {
    pub(crate) fn new(opened: &Opened) -> Self {
        Self {
            events: opened.ids().count(),
            samples: 0,
        }
    }

    /// Whether to be told of the next sample, after a pass that brought so many.
    pub(crate) fn is_wanted_after(&mut self, samples: usize) -> bool {
        self.samples = match samples {
            0 | 1 => 0,
            _ => self.samples.saturating_add(samples),
        };
        self.samples <= self.events / 2
    }
}

/// In which a ring fills by an eighth at most, if it is known how fast all events can come.
fn poll_interval(opened: &Opened) -> Option<Duration> {
    let rates = opened.events.iter().map(|event| event.setup.highest_rate());
    let per_second = rates.sum::<Option<u64>>()?;
    let dump = u64::from(opened.sizes.dump?);
    let eighth = (opened.sizes.ring / 8).checked_div(dump * per_second.max(1) / 1000)?;
    Some(Duration::from_millis(eighth).min(WakeupPolicy::LONGEST_NAP))
        .filter(|poll_interval| !poll_interval.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_ends_where_that_pays() {
        let check = |events, passes: &[(usize, bool)]| {
            let mut overflow_signal = OverflowSignalPolicy { events, samples: 0 };
            for &(samples, expected) in passes {
                assert_eq!(
                    overflow_signal.is_wanted_after(samples),
                    expected,
                    "{passes:?}"
                );
            }
        };
        check(
            2,
            &[(0, true), (1, true), (2, false), (1, true), (5, false)],
        );
        check(
            20,
            &[(5, true), (5, true), (5, false), (2, false), (0, true)],
        );
        // They come now and then: to go on and off each time would take more than it spares.
        check(20, &[(9, true), (1, true), (9, true), (0, true), (9, true)]);
    }

    #[test]
    fn haste_begins_with_need_and_lasts_longer_each_time() {
        let begin = Instant::now();
        let after = |millis| begin + Duration::from_millis(millis);
        let poll_interval = Duration::from_millis(5);
        let mut wakeup_policy = WakeupPolicy {
            poll_interval: Some(poll_interval),
            until: begin,
            lasts: Duration::ZERO,
        };
        assert_eq!(
            wakeup_policy.poll_interval(after(1), false),
            Some(poll_interval)
        );
        wakeup_policy.needed(after(1));
        assert_eq!(wakeup_policy.poll_interval(after(251), false), None);
        assert_eq!(
            wakeup_policy.poll_interval(after(251), true),
            Some(poll_interval)
        );
        assert_eq!(
            wakeup_policy.poll_interval(after(252), false),
            Some(poll_interval)
        );
        wakeup_policy.needed(after(300));
        assert_eq!(wakeup_policy.poll_interval(after(800), false), None);
        wakeup_policy.needed(after(800));
        assert_eq!(wakeup_policy.poll_interval(after(1300), false), None);
        assert_eq!(
            wakeup_policy.poll_interval(after(1301), false),
            Some(poll_interval),
            "not too short: no longer"
        );
        (0..10).for_each(|_| wakeup_policy.needed(wakeup_policy.until + poll_interval));
        assert_eq!(wakeup_policy.lasts, WakeupPolicy::LONGEST);
    }
}
