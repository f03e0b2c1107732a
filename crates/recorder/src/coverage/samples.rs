//! Samples, added up.

use prof_model::Coverage;

/// The samples of a thread, or of some.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    pub(super) number: u64,
    /// The sum of their periods.
    pub(super) periods: u64,
    /// The sum of their weights.
    pub(super) weight: u64,
}

impl Samples {
    pub(super) fn add(&mut self, period: u64, weight: u64) {
        self.number += 1;
        self.periods = self.periods.saturating_add(period);
        self.weight = self.weight.saturating_add(weight);
    }

    pub(super) fn append(&mut self, more: Self) {
        self.number += more.number;
        self.periods = self.periods.saturating_add(more.periods);
        self.weight = self.weight.saturating_add(more.weight);
    }

    /// Takes these samples from the coverage, with the same share of the work.
    pub(super) fn take_from(self, coverage: &mut Coverage) -> Coverage {
        let sampled = coverage.sampled.max(1);
        let take = |number: &mut u64, part: u64| {
            *number = number.saturating_sub(part);
            part
        };
        let take_share = |number: &mut u64| {
            let part = u128::from(*number) * u128::from(self.weight) / u128::from(sampled);
            take(number, u64::try_from(part).unwrap_or(u64::MAX))
        };
        Coverage {
            used: take_share(&mut coverage.used),
            unseen: take_share(&mut coverage.unseen),
            estimated: take_share(&mut coverage.estimated),
            sampled: take(&mut coverage.sampled, self.weight),
            periods: take(&mut coverage.periods, self.periods),
            samples: take(&mut coverage.samples, self.number),
            ..Coverage::default()
        }
    }
}
