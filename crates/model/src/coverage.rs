//! How much of what threads did was sampled.

use serde::{Deserialize, Serialize};

/// How much of what the threads of one name did was sampled.
///
/// The kernel counts exactly what each thread does, whether or not it is ever sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// The name of their process.
    pub process: String,
    /// Their own name.
    pub thread: String,
    /// How many threads had this name at their end.
    pub threads: u64,
    /// What they counted of the event: nanoseconds of CPU time, or cycles.
    pub used: u64,
    /// About how much of that was where the event does not sample: in the kernel, if it samples user
    /// code only. Clocks count it all the same.
    pub unseen: u64,
    /// The weight of their samples, in the same unit.
    pub sampled: u64,
    /// How many samples they have.
    pub samples: u64,
}

impl Coverage {
    /// The sampled part of what could be; more than 1 where chance had it so. `None` if there was
    /// nothing to sample.
    pub fn share(&self) -> Option<f64> {
        let seen = self.seen();
        (seen > 0).then(|| self.sampled as f64 / seen as f64)
    }

    /// What could be sampled of what they did.
    fn seen(&self) -> u64 {
        self.used.saturating_sub(self.unseen)
    }

    /// What to multiply the weights of the samples by, so that they sum up to what was used;
    /// `None` if that is not needed, or there are no samples.
    pub fn correction(&self) -> Option<f64> {
        let share = self.share().filter(|&share| share > 0.0)?;
        let off = (share - 1.0).abs() > Self::TOLERANCE;
        (off && !self.is_chance()).then_some(1.0 / share)
    }

    /// Whether too little was sampled to be trusted, or nothing at all.
    pub fn is_short(&self) -> bool {
        self.share()
            .is_some_and(|share| share < 1.0 - Self::TOLERANCE)
            && !self.is_chance()
    }

    /// The coverage of all threads together.
    pub fn total(all: &[Self]) -> Self {
        let mut total = Self::default();
        for one in all {
            total.threads = total.threads.saturating_add(one.threads);
            total.used = total.used.saturating_add(one.used);
            total.unseen = total.unseen.saturating_add(one.unseen);
            total.sampled = total.sampled.saturating_add(one.sampled);
            total.samples = total.samples.saturating_add(one.samples);
        }
        total
    }

    /// Nobody minds this much.
    const TOLERANCE: f64 = 0.05;

    /// Whether what is missing, or too much, is about what comes and goes with single samples:
    /// each thread may end just before its next one.
    fn is_chance(&self) -> bool {
        const SAMPLES: u64 = 20;
        let weight = self.sampled.checked_div(self.samples);
        weight.is_some_and(|weight| {
            self.seen().abs_diff(self.sampled) < weight.saturating_mul(SAMPLES)
        })
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
    fn what_is_missing_beyond_chance_is_made_up_for() {
        let check = |used, sampled, samples, short: bool, correction: Option<f64>| {
            let coverage = coverage(used, sampled, samples);
            assert_eq!(
                (coverage.is_short(), coverage.correction()),
                (short, correction),
                "{coverage:?}"
            );
        };
        check(0, 0, 0, false, None);
        check(1000, 1000, 1000, false, None);
        check(1000, 960, 960, false, None);
        check(1000, 500, 500, true, Some(2.0));
        check(1000, 2000, 2000, false, Some(0.5));
        // One sample of 100 is missing of 15.
        check(1500, 1400, 14, false, None);
        check(1000, 0, 0, true, None);
    }

    #[test]
    fn what_cannot_be_sampled_is_not_made_up_for() {
        let mut dd = coverage(100_000, 30_000, 300);
        assert_eq!((dd.is_short(), dd.correction().is_some()), (true, true));
        dd.unseen = 70_000;
        assert_eq!((dd.share(), dd.is_short()), (Some(1.0), false));
        assert_eq!(dd.correction(), None);
        dd.unseen = 100_000;
        assert_eq!((dd.share(), dd.correction()), (None, None));
    }
}
