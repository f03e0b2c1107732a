//! Which functions grew beyond a limit, and beyond chance.

use super::{Diff, FALSE_ALARMS, Row};

/// A share of a function that must not grow by more than a limit.
#[derive(Clone, Copy, Debug)]
pub struct LimitedShare<'a> {
    /// The function.
    pub row: &'a Row,
    /// Its share with all it calls, instead of its self share.
    pub with_callees: bool,
    /// The limit in percentage points.
    pub points: f64,
}

impl LimitedShare<'_> {
    /// The share before and after.
    pub fn shares(&self) -> (f64, f64) {
        let Row { before, after, .. } = self.row;
        match self.with_callees {
            true => (before.total, after.total),
            false => (before.own, after.own),
        }
    }

    fn chance(&self) -> f64 {
        match self.with_callees {
            true => self.row.total_chance,
            false => self.row.chance,
        }
    }
}

impl Diff {
    /// Those that grew by more than their limits. Over all of them together, chance does this in
    /// one of a hundred comparisons.
    pub fn grown<'a>(&self, judged: Vec<LimitedShare<'a>>) -> Vec<LimitedShare<'a>> {
        // However chance distributes a function's samples over both recordings, it can't grow by
        // more than if all were in the second one.
        let (before, after) = (self.whole.before, self.whole.after);
        let sample = |own: f64, samples: u64| own / samples as f64;
        let moved = sample(after.own, after.samples) / sample(before.own, before.samples);
        let mut judged = judged;
        judged.retain(|one| {
            let (before, after) = one.shares();
            (before * moved + after) * 100.0 > one.points
        });
        // Bonferroni: each has its part of the chance.
        let level = FALSE_ALARMS / judged.len() as f64;
        judged.retain(|one| {
            let (before, after) = one.shares();
            (after - before) * 100.0 > one.points && one.chance() <= level
        });
        judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::{CallTree, Split};
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::{TestProfile, everything};
    use crate::view::diff::Basis;

    type Random = fastrand::Rng;

    /// Draws samples of 300 functions with a long tail of shares: the first has 16 %, the second
    /// half of that. `more` of all samples are of the third one instead.
    fn recording(
        random: &mut Random,
        samples: usize,
        more: f64,
        weight: fn(&mut Random) -> f64,
    ) -> SymbolizedProfile {
        let shares = (1..=300).map(|rank| 1.0 / f64::from(rank));
        let sums: Vec<f64> = shares
            .scan(0.0, |sum, share| {
                *sum += share;
                Some(*sum)
            })
            .collect();
        let mut test = TestProfile::new();
        for _ in 0..samples {
            let at = random.f64() * sums[299];
            let drawn = sums.partition_point(|&sum| sum < at);
            let function = if random.f64() < more { 2 } else { drawn };
            let weight = (weight(random) * 1000.0).round();
            test.line(&format!("t lib{function}.so!f{function} {weight}"));
        }
        test.finish()
    }

    /// In how many of `pairs` of recordings any function grew by more than `points`. The third one
    /// has `more` in the second recording.
    fn alarms(
        pairs: usize,
        (before, after): (usize, usize),
        (more, points): (f64, f64),
        weight: fn(&mut Random) -> f64,
    ) -> usize {
        let mut random = Random::with_seed(7);
        let mut has_grown = |_: &usize| {
            let first = recording(&mut random, before, 0.0, weight);
            let second = recording(&mut random, after, more, weight);
            let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
            let diff = Diff::new(&tree(&first), &tree(&second), Basis::Weight).unwrap();
            let judged = diff.rows.iter().map(|row| LimitedShare {
                row,
                with_callees: false,
                points,
            });
            !diff.grown(judged.collect()).is_empty()
        };
        (0..pairs).filter(|pair| has_grown(pair)).count()
    }

    fn equal(_: &mut Random) -> f64 {
        1.0
    }

    /// Most are short, few are long.
    fn exponential(random: &mut Random) -> f64 {
        0.01 - (1.0 - random.f64()).ln()
    }

    #[test]
    fn chance_is_growth_in_one_of_a_hundred_pairs() {
        // One sample of a function is a percent of the second recording.
        assert!(alarms(200, (3000, 100), (0.0, 0.5), equal) <= 2);
        assert!(alarms(100, (500, 500), (0.0, 0.0), equal) <= 1);
        assert!(alarms(100, (500, 500), (0.0, 0.0), exponential) <= 1);
    }

    #[test]
    fn a_growth_of_five_points_is_found() {
        assert!(alarms(20, (2000, 2000), (0.05, 2.0), equal) >= 19);
        assert!(alarms(20, (2000, 2000), (0.05, 0.5), equal) >= 18);
    }
}
