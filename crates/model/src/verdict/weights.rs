//! How much of what was sampled is in whole stacks, in words.

use super::percent::{percent, whole_shown};
use super::{Grade, share};
use crate::quality::{Quality, SampledBy};

/// The share of the weight of stacks that is in whole ones: a single allocation may be larger than
/// all others.
pub(super) fn whole_weight(quality: &Quality) -> f64 {
    let weights = quality.weights;
    share(weights.all.saturating_sub(weights.partial), weights.all).unwrap_or(1.0)
}

/// How much is in whole stacks, if that is less than the share of whole stacks.
pub(super) fn partial_weight(quality: &Quality, whole_stacks: f64) -> Option<String> {
    let whole = whole_weight(quality);
    let events = match quality.sampled_by {
        SampledBy::Allocations => "allocated memory is",
        SampledBy::Rate | SampledBy::Period => "events are",
    };
    (whole < Grade::GOOD_WHOLE.min(whole_stacks)).then(|| {
        let whole = percent(whole_shown(whole));
        format!("{whole} of the {events} in whole stacks")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StackWeights;
    use crate::stack::StackEnd;
    use crate::verdict::Verdict;
    use crate::verdict::tests::quality;

    #[test]
    fn stacks_of_unequal_weights_are_graded_by_these_too() {
        let check = |partial, grade, expected: Option<&str>| {
            let ends = [(StackEnd::Root, 999), (StackEnd::NoUnwindInfo, 1)];
            let mut quality = quality(&ends, 0);
            quality.sampled_by = SampledBy::Allocations;
            quality.weights = StackWeights {
                all: 10_000,
                partial,
            };
            let verdict = Verdict::new(&quality);
            let reported = verdict.problems().get(1).map(String::as_str);
            assert_eq!((verdict.grade, reported), (grade, expected));
        };
        check(50, Grade::Good, None);
        let line = "90 % of the allocated memory is in whole stacks";
        check(1000, Grade::Bad, Some(line));
    }
}
