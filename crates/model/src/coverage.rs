//! How much of threads' work has samples.

use serde::{Deserialize, Serialize};

/// How much of the work of the threads of one name has samples.
///
/// The kernel counts exactly what each thread does, whether or not it is ever sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// The name of their process.
    pub process: String,
    /// Their own name.
    pub thread: String,
    /// How many threads had this name when they ended or executed another program.
    pub threads: u64,
    /// How many of them executed another program, and count under its name as well.
    #[serde(skip_serializing_if = "is_zero")]
    pub executed: u64,
    /// What the kernel counted of the event for them: nanoseconds of CPU time, or cycles.
    pub used: u64,
    /// About how much of `used` the event cannot sample: the part in the kernel, if the event
    /// samples user code only. Clocks count it all the same.
    pub unseen: u64,
    /// The weight of their samples, in the same unit.
    pub sampled: u64,
    /// The sum of the periods of their samples: the kernel counted at least this much of them. It
    /// differs from `sampled` if periods vary; 0 in recordings that do not store it.
    #[serde(skip_serializing_if = "is_zero")]
    pub periods: u64,
    /// The part of `used` that no READ record reported, and that several threads may have used.
    #[serde(skip_serializing_if = "is_zero")]
    pub estimated: u64,
    /// How many samples they have.
    pub samples: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Coverage {
    /// The share of the sampleable work that has samples; by chance it can exceed 1. `None` if
    /// there was nothing to sample.
    pub fn share(&self) -> Option<f64> {
        let seen = self.seen();
        (seen > 0).then(|| self.sampled as f64 / seen as f64)
    }

    /// The part of their work that could be sampled.
    fn seen(&self) -> u64 {
        self.used.saturating_sub(self.unseen)
    }

    /// The factor that makes the weights of the samples sum up to `used`; `None` if it is not
    /// needed or not proven, or if there are no samples. It never makes them sum up to less than
    /// the periods of the samples.
    pub fn correction(&self) -> Option<f64> {
        let is_proven = self.estimated as f64 <= self.used as f64 * Self::TOLERANCE;
        let least = match self.periods {
            0 => self.sampled,
            periods => periods,
        };
        let sum = self.seen().max(least.min(self.sampled));
        let needed = is_proven && self.sampled > 0 && Self::is_off(self.sampled, sum);
        let is_chance = self.is_chance(self.weight().unwrap_or(0));
        (needed && !is_chance).then(|| sum as f64 / self.sampled as f64)
    }

    /// Whether the samples stand for too little or too much, or there are none. `total` is the
    /// coverage of all threads.
    pub(crate) fn is_wrong(&self, total: &Self) -> bool {
        let weight = self.weight().or_else(|| total.weight());
        self.seen() > 0
            && Self::is_off(self.sampled, self.seen())
            && !self.is_chance(weight.unwrap_or(0))
    }

    /// Whether a share that [is wrong](Self::is_wrong) is so far off that the report misleads.
    pub(crate) fn misleads(&self) -> bool {
        const RIGHT: std::ops::RangeInclusive<f64> = 0.9..=1.1;
        self.share().is_some_and(|share| !RIGHT.contains(&share))
    }

    /// The coverage of all threads together.
    pub fn total(all: &[Self]) -> Self {
        let mut total = Self::default();
        for one in all {
            total.append(one);
        }
        total.threads = total
            .threads
            .saturating_sub(std::mem::take(&mut total.executed));
        total
    }

    /// Adds what other threads did; the names stay.
    pub fn append(&mut self, more: &Self) {
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut self.threads, more.threads);
        add(&mut self.executed, more.executed);
        add(&mut self.used, more.used);
        add(&mut self.unseen, more.unseen);
        add(&mut self.sampled, more.sampled);
        add(&mut self.periods, more.periods);
        add(&mut self.estimated, more.estimated);
        add(&mut self.samples, more.samples);
    }

    /// A deviation up to this much does not matter.
    const TOLERANCE: f64 = 0.05;

    fn is_off(sampled: u64, seen: u64) -> bool {
        (sampled as f64 - seen as f64).abs() > seen as f64 * Self::TOLERANCE
    }

    /// The average weight of a sample.
    fn weight(&self) -> Option<u64> {
        self.sampled.checked_div(self.samples)
    }

    /// Whether the deviation is within chance for samples of this weight: each thread may end just
    /// before its next sample.
    fn is_chance(&self, weight: u64) -> bool {
        const SAMPLES: u64 = 20;
        self.seen().abs_diff(self.sampled) < weight.saturating_mul(SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(used: u64, sampled: u64, samples: u64) -> Coverage {
        Coverage {
            used,
            sampled,
            samples,
            ..Coverage::default()
        }
    }

    #[test]
    fn significant_missing_weight_is_corrected() {
        let check = |used, sampled, samples, wrong: bool, correction: Option<f64>| {
            let coverage = coverage(used, sampled, samples);
            assert_eq!(
                (coverage.is_wrong(&coverage), coverage.correction()),
                (wrong, correction),
                "{coverage:?}"
            );
        };
        check(0, 0, 0, false, None);
        check(1000, 1000, 1000, false, None);
        check(1000, 960, 960, false, None);
        check(1000, 500, 500, true, Some(2.0));
        // One sample of 100 is missing from 15 threads.
        check(1500, 1400, 14, false, None);
        check(1000, 0, 0, true, None);
        // Missing no more than other threads do proves nothing.
        let total = coverage(50_000, 49_000, 980);
        assert!(!coverage(999, 0, 0).is_wrong(&total));
        assert!(coverage(1000, 0, 0).is_wrong(&total));
    }

    #[test]
    fn weights_never_shrink_below_the_periods_of_the_samples() {
        let check = |periods, correction: Option<f64>| {
            let coverage = Coverage {
                periods,
                ..coverage(1000, 2000, 2000)
            };
            assert!(coverage.is_wrong(&coverage) && coverage.misleads());
            assert_eq!(coverage.correction(), correction, "{periods}");
        };
        check(0, None);
        check(2000, None);
        check(1990, None);
        check(1500, Some(0.75));
        check(900, Some(0.5));
    }

    #[test]
    fn insignificant_differences_correct_nothing() {
        let mut one = coverage(1000, 500, 500);
        one.estimated = 50;
        assert_eq!(one.correction(), Some(2.0));
        one.estimated = 51;
        assert_eq!((one.correction(), one.is_wrong(&one)), (None, true));
    }

    #[test]
    fn time_that_cannot_be_sampled_is_not_corrected() {
        let mut dd = coverage(100_000, 30_000, 300);
        assert_eq!((dd.is_wrong(&dd), dd.correction().is_some()), (true, true));
        dd.unseen = 70_000;
        assert_eq!((dd.share(), dd.is_wrong(&dd)), (Some(1.0), false));
        assert_eq!(dd.correction(), None);
        dd.unseen = 100_000;
        assert_eq!((dd.share(), dd.correction()), (None, None));
    }
}
