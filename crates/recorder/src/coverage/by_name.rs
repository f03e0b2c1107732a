//! What is known of threads, added up by their names.

use std::sync::Arc;

use prof_events::{Opened, Sampling};
use prof_model::{Coverage, Fallback, Unsampled, UnsampledCode};

/// What one event says of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) id: u64,
    /// What it had counted at the last sample.
    pub(super) age: u64,
    /// Of the first sample.
    pub(super) period: u64,
    pub(super) used: u64,
    /// Whether a READ record said how much that is.
    pub(super) reported: bool,
    /// Whether others may have done some of it.
    pub(super) estimated: bool,
    /// When the kernel stopped sampling it, if it has not gone on since, in nanoseconds.
    pub(super) stopped: Option<u64>,
    /// For how long it was stopped, in nanoseconds.
    pub(super) throttled: u64,
}

impl Counted {
    /// The kernel goes on sampling at its next tick, 100 of which a second are the fewest there
    /// are. A thread that waits meanwhile is reported later.
    const LONGEST_STOP: u64 = 10_000_000;

    /// No record will say what the thread did: takes what its samples say for it.
    pub(super) fn assume(&mut self, each: impl FnOnce(u64, u64)) {
        if !self.reported && self.age > 0 {
            self.used = self.age;
            self.estimated = true;
            each(self.id, self.used);
        }
    }

    /// Too much of it was sampled (PERF_RECORD_THROTTLE).
    pub(super) fn stop(&mut self, time: u64) {
        self.stopped = Some(time);
    }

    /// It may be sampled again (PERF_RECORD_UNTHROTTLE).
    pub(super) fn go_on(&mut self, time: u64) {
        if let Some(stopped) = self.stopped.take() {
            let stop = time.saturating_sub(stopped).min(Self::LONGEST_STOP);
            self.throttled = self.throttled.saturating_add(stop);
        }
    }
}

/// The samples of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    pub(super) number: u64,
    /// What their periods add up to.
    periods: u64,
    /// What their weights add up to.
    weight: u64,
}

impl Samples {
    pub(super) fn add(&mut self, period: u64, weight: u64) {
        self.number += 1;
        self.periods = self.periods.saturating_add(period);
        self.weight = self.weight.saturating_add(weight);
    }
}

/// What is known of the threads of one name.
#[derive(Debug)]
pub(super) struct CoverageByName {
    coverage: Coverage,
    /// Those that live long, and the others. All of the first have samples to go by; what is known
    /// of some of the others goes for all of them.
    long: Expected,
    short: Expected,
}

/// Samples that should come, and those that do.
#[derive(Debug, Default)]
struct Expected {
    /// What the threads did.
    used: u64,
    /// What those of them did of which it is known how many samples were due: one in each period.
    due: u64,
    /// What part of that the samples stand for that came. The others fell where the event does
    /// not sample.
    came: u64,
}

impl CoverageByName {
    pub(super) fn new((process, thread): &(Arc<str>, Arc<str>)) -> Self {
        Self {
            coverage: Coverage {
                process: process.to_string(),
                thread: thread.to_string(),
                ..Coverage::default()
            },
            long: Expected::default(),
            short: Expected::default(),
        }
    }

    /// A thread with these samples. `half_blind`: see there.
    pub(super) fn add(&mut self, samples: Samples, events: &[Counted], half_blind: Option<u64>) {
        let coverage = &mut self.coverage;
        coverage.threads += 1;
        coverage.sampled = coverage.sampled.saturating_add(samples.weight);
        coverage.periods = coverage.periods.saturating_add(samples.periods);
        coverage.samples += samples.number;
        for event in events {
            self.coverage.used = self.coverage.used.saturating_add(event.used);
            if event.estimated {
                self.coverage.estimated = self.coverage.estimated.saturating_add(event.used);
            }
            if let Some(usual) = half_blind {
                self.expect(event, usual);
            }
        }
    }

    /// Counts the samples that were due, and those that came.
    fn expect(&mut self, event: &Counted, usual: u64) {
        /// In less than so many periods there is too little to be expected.
        const PERIODS: u64 = 4;
        let expected = match event.used >= PERIODS.saturating_mul(usual) {
            true => &mut self.long,
            false => &mut self.short,
        };
        expected.used = expected.used.saturating_add(event.used);
        let period = if event.age > 0 { event.period } else { usual };
        let watched = event.used.saturating_sub(event.throttled);
        let periods = watched.checked_div(period).unwrap_or(0);
        if periods >= PERIODS {
            expected.due = expected.due.saturating_add(periods * period);
            expected.came = expected.came.saturating_add(event.age);
        }
    }

    /// `lost`: the share of all samples that did not get here, which fell anywhere.
    pub(super) fn coverage(mut self, lost: f64) -> Coverage {
        let (long, short) = (self.long.unseen(lost), self.short.unseen(lost));
        self.coverage.unseen = long.saturating_add(short);
        self.coverage
    }
}

impl Expected {
    /// What the threads did where the event does not sample.
    fn unseen(&self, lost: f64) -> u64 {
        let due = self.due as f64 * (1.0 - lost);
        let came = self.came as f64;
        if came >= due {
            return 0;
        }
        (self.used as f64 * (1.0 - came / due)) as u64
    }
}

/// The usual period of an event that counts more than it can sample. Stopped threads are sampled
/// with all of their CPU time.
pub(super) fn half_blind(opened: &Opened) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let setup = &opened.reported_event()?.setup;
    let modifiers = setup.spec.modifiers;
    let by_stops = |fallback| matches!(fallback, &Fallback::Ptrace { .. });
    if opened.fallbacks.iter().any(by_stops) {
        return None;
    }
    if !setup.spec.is_clock() || modifiers.user && modifiers.kernel {
        return None;
    }
    match setup.sampling {
        Sampling::Hertz(hertz) | Sampling::Paced(hertz, _) => SECOND.checked_div(hertz),
        Sampling::Period(period) => Some(period),
        Sampling::Never => None,
    }
}

/// What code such an event counts and does not sample, and why.
pub(super) fn unsampled(opened: &Opened) -> Option<Unsampled> {
    let event = opened.reported_event()?;
    half_blind(opened)?;
    let spec = &event.setup.spec;
    let paranoid = opened.fallbacks.iter().find_map(|fallback| match fallback {
        Fallback::UserOnly { paranoid } => Some(paranoid),
        _ => None,
    });
    let cause = match paranoid {
        Some(paranoid) if !spec.modifiers.explicit_modes => {
            format!("perf_event_paranoid={paranoid}")
        }
        _ => format!("-e {spec}"),
    };
    let code = match spec.modifiers.kernel {
        true => UnsampledCode::User,
        false => UnsampledCode::Kernel,
    };
    Some(Unsampled { code, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_where_nothing_is_sampled_is_not_missing() {
        let check_lossy = |lost, half_blind, threads: &[(u64, u64, u64)], unseen: u64| {
            let mut named = CoverageByName::new(&("dd".into(), "dd".into()));
            for &(used, period, samples) in threads {
                let age = samples * period;
                let counted = Counted {
                    id: 1,
                    age,
                    period,
                    used,
                    ..Counted::default()
                };
                named.add(Samples::default(), &[counted], half_blind);
            }
            assert_eq!(named.coverage(lost).unseen, unseen, "{threads:?}");
        };
        let check = |half_blind, threads: &[(u64, u64, u64)], unseen| {
            check_lossy(0.0, half_blind, threads, unseen);
        };
        // A third of the samples came that were due.
        check(Some(100), &[(9050, 100, 30)], 6033);
        check(None, &[(9050, 100, 30)], 0);
        check(Some(100), &[(9050, 100, 90)], 0);
        check(Some(100), &[(9050, 100, 91)], 0);
        // With a period of their own, short ones tell of others; too short ones tell nothing, and
        // what long ones do is another matter.
        check(Some(100), &[(90, 10, 3), (99, 100, 0)], 126);
        check(Some(100), &[(90, 10, 9), (800, 100, 2)], 600);
        check(Some(100), &[(350, 100, 1)], 0);
        // All of it was elsewhere.
        check(Some(100), &[(400, 0, 0)], 400);
        // What was lost is no sign of that.
        check_lossy(0.5, Some(100), &[(9050, 100, 45)], 0);
        check_lossy(0.5, Some(100), &[(9050, 100, 15)], 6033);
        check_lossy(1.0, Some(100), &[(9050, 100, 0)], 0);
    }

    #[test]
    fn what_was_throttled_does_not_tell_where_a_thread_was() {
        let check = |ptrace: &[(u64, u64)], samples: u64, unseen: u64| {
            let mut named = CoverageByName::new(&("dd".into(), "dd".into()));
            let (used, period) = (10_000_000, 10_000);
            let age = samples * period;
            let mut counted = Counted {
                age,
                period,
                used,
                ..Counted::default()
            };
            for &(from, to) in ptrace {
                counted.stop(from);
                counted.go_on(to);
            }
            // One that nobody heard the begin of.
            counted.go_on(u64::MAX);
            named.add(Samples::default(), &[counted], Some(period));
            assert_eq!(named.coverage(0.0).unseen, unseen, "{ptrace:?}");
        };
        check(&[], 600, 4_000_000);
        check(&[(0, 1_000_000), (5_000_000, 8_000_000)], 600, 0);
        check(&[(0, 1_000_000), (5_000_000, 8_000_000)], 300, 5_000_000);
        // It slept as well.
        check(&[(0, 90_000_000)], 600, 0);
    }
}
