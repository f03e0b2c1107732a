//! How far a recording can be trusted, in a word.

use std::fmt;

use serde::Serialize;

/// How far a profile can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// At least 99.5 % of the stacks, and of the waiting time, are whole and at most 0.1 % of the
    /// samples are lost.
    Good,
    /// Between good and bad: read it with what is missing in mind.
    Fair,
    /// Too few samples to decide between good and fair. `--strict` refuses these, too.
    TooFewSamples,
    /// There are no samples, fewer than 95 % of the stacks are whole, more than 1 % of the samples
    /// are lost, or more than half of the work has no samples. `--strict` refuses these.
    Bad,
}

impl Grade {
    pub(super) const GOOD_WHOLE: f64 = 0.995;
    pub(super) const FAIR_WHOLE: f64 = 0.95;
    pub(super) const GOOD_LOST: f64 = 0.001;
    pub(super) const FAIR_LOST: f64 = 0.01;

    /// With 30 samples, one recording in 24 shows nothing of a function that takes 10 % of the
    /// time.
    pub(super) const ENOUGH_SAMPLES: u64 = 30;

    /// Whether such a profile is to be trusted: the question of `--strict`.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::Good | Self::Fair)
    }

    pub(super) fn of(whole: f64, lost: f64) -> Self {
        if whole >= Self::GOOD_WHOLE && lost <= Self::GOOD_LOST {
            Self::Good
        } else if whole >= Self::FAIR_WHOLE && lost <= Self::FAIR_LOST {
            Self::Fair
        } else {
            Self::Bad
        }
    }
}

/// The grade in a word or two, as in the verdict.
impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::TooFewSamples => "too few samples",
            Self::Bad => "BAD",
        })
    }
}
