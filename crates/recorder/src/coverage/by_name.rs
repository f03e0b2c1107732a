//! The threads' counts and samples, added up by their names.

use prof_events::{Opened, Sampling};
use prof_model::{Coverage, Fallback, Unsampled, UnsampledCode};

use super::earlier_names::EarlierNames;
use super::samples::Samples;
use super::thread_name::ThreadName;

/// One event's counts and samples of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) id: u64,
    /// The event's count at the last sample.
    pub(super) age: u64,
    /// The period of the first sample.
    pub(super) period: u64,
    pub(super) used: u64,
    /// Whether a READ record reported the count.
    pub(super) reported: bool,
    /// Whether other threads may have used some of it.
    pub(super) estimated: bool,
    /// When the kernel throttled it, if sampling has not resumed since, in nanoseconds.
    pub(super) stopped: Option<u64>,
    /// For how long it was throttled, in nanoseconds.
    pub(super) throttled: u64,
}

impl Counted {
    /// The kernel resumes sampling at its next tick; at least 100 ticks a second are usual. For a
    /// thread that waits meanwhile, the record comes later.
    const LONGEST_STOP: u64 = 10_000_000;

    /// Takes the count that its samples imply, as no record will report it.
    pub(super) fn assume(&mut self, each: impl FnOnce(u64, u64)) {
        if !self.reported && self.age > 0 {
            self.used = self.age;
            self.estimated = true;
            each(self.id, self.used);
        }
    }

    /// Sampling was throttled (PERF_RECORD_THROTTLE).
    pub(super) fn stop(&mut self, time: u64) {
        self.stopped = Some(time);
    }

    /// Sampling resumed (PERF_RECORD_UNTHROTTLE).
    pub(super) fn go_on(&mut self, time: u64) {
        if let Some(stopped) = self.stopped.take() {
            let stop = time.saturating_sub(stopped).min(Self::LONGEST_STOP);
            self.throttled = self.throttled.saturating_add(stop);
        }
    }
}

/// The threads of one name.
#[derive(Debug, Default)]
pub(super) struct CoverageByName {
    coverage: Coverage,
    /// The part of it before they executed the programs whose names they have.
    earlier: EarlierNames,
    /// Long-lived threads, and the others. All long-lived ones have samples to judge by; the result
    /// for some of the others applies to all of them.
    long: Expected,
    short: Expected,
}

/// Samples that were due, and those that came.
#[derive(Debug, Default)]
struct Expected {
    /// The work of the threads.
    used: u64,
    /// The part of it for which the number of due samples is known: one per period.
    due: u64,
    /// The part of `due` for which samples came. The others were due where the event does not
    /// sample.
    came: u64,
}

impl CoverageByName {
    /// A thread that has this name now.
    pub(super) fn add_thread(
        &mut self,
        name: &ThreadName,
        samples: Samples,
        earlier: EarlierNames,
    ) {
        self.coverage.threads += 1;
        self.add_samples(samples);
        self.add_samples(earlier.samples());
        self.earlier.append(earlier, name);
    }

    fn add_samples(&mut self, samples: Samples) {
        let coverage = &mut self.coverage;
        coverage.sampled = coverage.sampled.saturating_add(samples.weight);
        coverage.periods = coverage.periods.saturating_add(samples.periods);
        coverage.samples += samples.number;
    }

    /// Adds what such a thread has counted. For `undersampled_period`, see that function.
    pub(super) fn add_counts(&mut self, events: &[Counted], undersampled_period: Option<u64>) {
        for event in events {
            self.coverage.used = self.coverage.used.saturating_add(event.used);
            if event.estimated {
                self.coverage.estimated = self.coverage.estimated.saturating_add(event.used);
            }
            if let Some(usual) = undersampled_period {
                self.expect(event, usual);
            }
        }
    }

    /// Counts the samples that were due, and those that came.
    fn expect(&mut self, event: &Counted, usual: u64) {
        /// With fewer periods, too few samples are due to judge by.
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

    /// The coverage of these threads, by the names that they had. `lost`: the share of all samples
    /// that were lost, evenly among threads.
    pub(super) fn coverage(mut self, name: ThreadName, lost: f64) -> Vec<(ThreadName, Coverage)> {
        let (long, short) = (self.long.unseen(lost), self.short.unseen(lost));
        self.coverage.unseen = long.saturating_add(short);
        let mut all = self.earlier.take_from(&mut self.coverage);
        all.push((name, self.coverage));
        all
    }
}

impl Expected {
    /// The work where the event does not sample.
    fn unseen(&self, lost: f64) -> u64 {
        let due = self.due as f64 * (1.0 - lost);
        let came = self.came as f64;
        if came >= due {
            return 0;
        }
        (self.used as f64 * (1.0 - came / due)) as u64
    }
}

/// The usual period of an event that counts more than it can sample; `None` for ptrace, which
/// samples all of the CPU time.
pub(super) fn undersampled_period(opened: &Opened) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let setup = &opened.reported_event()?.setup;
    let modifiers = setup.spec.modifiers;
    let by_ptrace = |fallback| matches!(fallback, &Fallback::Ptrace { .. });
    if opened.fallbacks.iter().any(by_ptrace) {
        return None;
    }
    if !setup.spec.is_clock() || modifiers.user && modifiers.kernel {
        return None;
    }
    match setup.sampling {
        Sampling::Hertz(hertz) | Sampling::MeasuredPeriod(hertz, _) => SECOND.checked_div(hertz),
        Sampling::Period(period) => Some(period),
        Sampling::Never => None,
    }
}

/// The code that such an event counts and does not sample, and why.
pub(super) fn unsampled(opened: &Opened) -> Option<Unsampled> {
    let event = opened.reported_event()?;
    undersampled_period(opened)?;
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
    fn hits_outside_the_sampled_range_are_not_missing() {
        let check_lossy = |lost, undersampled_period, threads: &[(u64, u64, u64)], unseen: u64| {
            let mut named = CoverageByName::default();
            for &(used, period, samples) in threads {
                let age = samples * period;
                let counted = Counted {
                    id: 1,
                    age,
                    period,
                    used,
                    ..Counted::default()
                };
                named.add_counts(&[counted], undersampled_period);
            }
            let all = named.coverage(ThreadName::others(), lost);
            assert_eq!(all[0].1.unseen, unseen, "{threads:?}");
        };
        let check = |undersampled_period, threads: &[(u64, u64, u64)], unseen| {
            check_lossy(0.0, undersampled_period, threads, unseen);
        };
        // A third of the due samples came.
        check(Some(100), &[(9050, 100, 30)], 6033);
        check(None, &[(9050, 100, 30)], 0);
        check(Some(100), &[(9050, 100, 90)], 0);
        check(Some(100), &[(9050, 100, 91)], 0);
        // Short threads with a period of their own count for the others; too short ones prove
        // nothing, and long ones are judged separately.
        check(Some(100), &[(90, 10, 3), (99, 100, 0)], 126);
        check(Some(100), &[(90, 10, 9), (800, 100, 2)], 600);
        check(Some(100), &[(350, 100, 1)], 0);
        // All of it was where nothing is sampled.
        check(Some(100), &[(400, 0, 0)], 400);
        // Lost samples prove nothing.
        check_lossy(0.5, Some(100), &[(9050, 100, 45)], 0);
        check_lossy(0.5, Some(100), &[(9050, 100, 15)], 6033);
        check_lossy(1.0, Some(100), &[(9050, 100, 0)], 0);
    }

    #[test]
    fn throttled_time_is_not_user_or_kernel_time() {
        let check = |ptrace: &[(u64, u64)], samples: u64, unseen: u64| {
            let mut named = CoverageByName::default();
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
            // A thread whose throttling was not reported.
            counted.go_on(u64::MAX);
            named.add_counts(&[counted], Some(period));
            let all = named.coverage(ThreadName::others(), 0.0);
            assert_eq!(all[0].1.unseen, unseen, "{ptrace:?}");
        };
        check(&[], 600, 4_000_000);
        check(&[(0, 1_000_000), (5_000_000, 8_000_000)], 600, 0);
        check(&[(0, 1_000_000), (5_000_000, 8_000_000)], 300, 5_000_000);
        // It slept as well.
        check(&[(0, 90_000_000)], 600, 0);
    }
}
