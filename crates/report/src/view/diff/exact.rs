//! Exact tests of counts. They hold for few samples and for recordings of unequal length, too.

/// The most samples of a side that count. With these, a change by a tenth of a point is clear.
const MOST: f64 = 1e7;

/// Outcomes that are less likely than the likeliest one by this factor do not count.
const NEGLIGIBLE: f64 = 1e-20;

/// Fisher's exact test: the probability that two recordings of the same work differ at least as
/// much as these, which have `inside` samples in a function and `outside` samples elsewhere.
pub(super) fn same_share(inside: [f64; 2], outside: [f64; 2]) -> f64 {
    let whole = |side: usize| {
        let scale = (MOST / (inside[side] + outside[side])).min(1.0);
        [inside[side], outside[side]].map(|count| (count * scale).round())
    };
    let ([before, before_outside], [after, after_outside]) = (whole(0), whole(1));
    let (hits, misses) = (before + after, before_outside + after_outside);
    let drawn = after + after_outside;
    let outcomes = Outcomes {
        range: ((drawn - misses).max(0.0), drawn.min(hits)),
        likeliest: ((drawn + 1.0) * (hits + 1.0) / (hits + misses + 2.0)).floor(),
        ratio: |count: f64| {
            (hits - count) * (drawn - count) / ((count + 1.0) * (misses - drawn + count + 1.0))
        },
    };
    outcomes.chance(after)
}

/// The binomial test: the probability that two recordings with the same rate of samples differ at
/// least as much as these; `part` of the samples is expected in the second one.
pub(super) fn same_rate(samples: [f64; 2], part: f64) -> f64 {
    let scale = (MOST / (samples[0] + samples[1])).min(1.0);
    let [before, after] = samples.map(|count| (count * scale).round());
    let all = before + after;
    let outcomes = Outcomes {
        range: (0.0, all),
        likeliest: ((all + 1.0) * part).floor(),
        ratio: |count: f64| (all - count) / (count + 1.0) * part / (1.0 - part),
    };
    outcomes.chance(after)
}

/// The outcomes of an experiment: counts that are the likelier, the closer they are to the
/// likeliest one.
struct Outcomes<R> {
    /// The smallest and the largest one.
    range: (f64, f64),
    likeliest: f64,
    /// How much likelier the next count is than this one.
    ratio: R,
}

impl<R: Fn(f64) -> f64> Outcomes<R> {
    /// The probability of all outcomes that are at most as likely as `observed`.
    fn chance(&self, observed: f64) -> f64 {
        let (least, most) = self.range;
        let likeliest = self.likeliest.clamp(least, most.max(least));
        let mut at = (likeliest, 1.0);
        let above = std::iter::from_fn(|| {
            let (count, odds) = at;
            at = (count + 1.0, odds * (self.ratio)(count));
            (count <= most && odds > NEGLIGIBLE).then_some((count, odds))
        });
        let mut at = (likeliest, 1.0);
        let below = std::iter::from_fn(|| {
            let (count, odds) = at;
            at = (count - 1.0, odds / (self.ratio)(count - 1.0));
            (count > least && odds > NEGLIGIBLE).then_some(at)
        });
        let odds: Vec<(f64, f64)> = above.chain(below).collect();
        let found = odds.iter().find(|(count, _)| *count == observed);
        // Equal ones differ by rounding.
        let bound = found.map_or(0.0, |(_, odds)| odds * (1.0 + 1e-7));
        let sum = |most: f64| -> f64 {
            let odds = odds.iter().map(|(_, odds)| odds);
            odds.filter(|&&odds| odds <= most).sum()
        };
        sum(bound) / sum(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, expected: f64) {
        let close = (found - expected).abs() <= expected * 0.01 + 1e-12;
        assert!(close, "{found} is not {expected}");
    }

    /// Expects this probability for `hits` of `samples`, in either order.
    fn check_share(before: (f64, f64), after: (f64, f64), expected: f64) {
        for ((hits, samples), (more, all)) in [(before, after), (after, before)] {
            check(
                same_share([hits, more], [samples - hits, all - more]),
                expected,
            );
        }
    }

    #[test]
    fn shares_of_few_samples() {
        check_share((23.0, 23.0), (2.0, 3.0), 3.0 / 26.0);
        check_share((1.0, 100.0), (0.0, 3000.0), 1.0 / 31.0);
        check_share((4.0, 2000.0), (0.0, 2000.0), 0.1249);
        check_share((7.0, 2000.0), (0.0, 2000.0), 0.0156);
        // The lady who tastes tea.
        check_share((3.0, 4.0), (1.0, 4.0), 34.0 / 70.0);
    }

    #[test]
    fn shares_of_many_samples_are_those_of_the_normal_distribution() {
        // 2.576 and 1.960 standard deviations.
        check_share((500_000.0, 1e6), (501_821.4, 1e6), 0.01);
        check_share((500_000.0, 1e6), (501_385.9, 1e6), 0.05);
        check_share((5e8, 1e9), (5e8, 1e9), 1.0);
        check_share((1e8, 1e9), (2e8, 1e9), 0.0);
    }

    #[test]
    fn shares_of_nothing_are_no_change() {
        check_share((0.0, 10.0), (0.0, 10.0), 1.0);
        check_share((10.0, 10.0), (10.0, 10.0), 1.0);
        check_share((0.0, 0.0), (1.0, 10.0), 1.0);
    }

    #[test]
    fn rates() {
        check(same_rate([0.0, 4.0], 0.5), 2.0 / 16.0);
        check(same_rate([7.0, 0.0], 0.5), 2.0 / 128.0);
        // Twice as long, twice as many.
        check(same_rate([10.0, 20.0], 2.0 / 3.0), 1.0);
        check(same_rate([1.0, 0.0], 0.9), 0.1);
        check(same_rate([0.0, 0.0], 0.5), 1.0);
        check(same_rate([1e9, 1.01e9], 0.5), 0.0);
    }
}
