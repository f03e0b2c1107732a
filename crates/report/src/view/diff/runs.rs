//! The changes between two groups of runs: each run is one observation, so that the noise between
//! runs counts, and not only that of sampling.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::calltree::CallTree;
use crate::error::Error;

use super::{FALSE_ALARMS, Key, Side, builds, by_name, check_events, student};

/// The order of the runs of two groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// One group, then the other: a change of the machine in between looks like a change of the
    /// program.
    #[default]
    Grouped,
    /// Each run next to its partner of the other group, so that their difference is an observation:
    /// effects of the machine on both cancel out.
    Paired,
}

/// Functions of two groups of runs side by side, the largest growth of self share first.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsDiff {
    /// The older runs.
    pub before: Runs,
    /// The newer runs.
    pub after: Runs,
    /// A smaller change of the cost is noise, as a share of the cost before; the chance is shared
    /// with the rows.
    pub cost_noise: f64,
    /// One row for each function with at least the requested share, on either side.
    pub rows: Vec<RunsRow>,
}

/// One of two groups of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// How many there are.
    pub count: usize,
    /// Samples of all of them.
    pub samples: u64,
    /// The mean total weight of a run.
    pub cost: f64,
}

/// A function in two groups of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsRow {
    /// Its name.
    pub function: Arc<str>,
    /// The module it is in.
    pub module: Arc<str>,
    /// Mean self share before, from 0 to 1.
    pub before: f64,
    /// Mean self share after.
    pub after: f64,
    /// A smaller change than this is noise: over all rows and the cost together, chance exceeds it
    /// in one of a hundred comparisons of the same program with itself.
    pub noise: f64,
}

impl RunsRow {
    /// Change of the self share.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the change is more than noise.
    pub fn is_certain(&self) -> bool {
        self.change().abs() > self.noise
    }
}

/// Degrees of freedom of a variance that is calculated, not estimated.
const KNOWN: usize = 1000;

impl RunsDiff {
    /// The change of a run's cost, as a share of the cost before.
    pub fn cost_change(&self) -> f64 {
        (self.after.cost - self.before.cost) / self.before.cost.max(1.0)
    }

    /// Whether the change of the cost is more than noise.
    pub fn is_cost_certain(&self) -> bool {
        self.cost_change().abs() > self.cost_noise
    }

    /// Compares the functions whose self share is at least `least` (0 to 1) before or after.
    ///
    /// # Errors
    /// [`Error::TooFewRuns`] with fewer than two runs on a side, [`Error::UnpairedRuns`] if runs
    /// have no partner, [`Error::DifferentEvents`] if these measure different things.
    pub fn new(
        before: &[CallTree<'_>],
        after: &[CallTree<'_>],
        order: RunOrder,
        least: f64,
    ) -> Result<Self, Error> {
        if before.len() < 2 || after.len() < 2 {
            return Err(Error::TooFewRuns);
        }
        if order == RunOrder::Paired && before.len() != after.len() {
            return Err(Error::UnpairedRuns);
        }
        for tree in before.iter().chain(after) {
            check_events(&before[0], tree)?;
        }
        let newer = Group::new(after, |side| side);
        let names = newer.functions();
        let older = Group::new(before, |side| builds::renamed(side, &names));
        let functions: BTreeSet<Key> = older
            .functions()
            .into_keys()
            .chain(names.into_keys())
            .collect();
        let pairs: Vec<(Key, Observed, Observed)> = functions
            .into_iter()
            .map(|key| (older.observed(&key), newer.observed(&key), key))
            .filter(|(before, after, _)| before.mean.max(after.mean) >= least)
            .map(|(before, after, key)| (key, before, after))
            .collect();
        // Bonferroni: all rows and the cost together, growth or shrinkage.
        let noise = Noise::new(
            FALSE_ALARMS / (pairs.len() + 1) as f64,
            before,
            after,
            order,
        );
        let mut rows: Vec<RunsRow> = pairs
            .into_iter()
            .map(|((function, module), before, after)| RunsRow {
                function,
                module,
                before: before.mean,
                after: after.mean,
                noise: noise.of(&before, &after),
            })
            .collect();
        rows.sort_by(|a, b| b.change().total_cmp(&a.change()));
        let [older_cost, newer_cost] = [before, after].map(Observed::cost);
        Ok(Self {
            before: older.summary(&older_cost),
            after: newer.summary(&newer_cost),
            cost_noise: noise.of(&older_cost, &newer_cost) / older_cost.mean.max(1.0),
            rows,
        })
    }
}

/// The runs of one side, function by function.
struct Group {
    runs: Vec<BTreeMap<Key, Side>>,
    samples: u64,
}

impl Group {
    fn new(
        trees: &[CallTree<'_>],
        named: impl Fn(BTreeMap<Key, Side>) -> BTreeMap<Key, Side>,
    ) -> Self {
        let run =
            |tree: &CallTree<'_>| named(by_name(tree, 1.0 / tree.total().value.max(1) as f64));
        Self {
            runs: trees.iter().map(run).collect(),
            samples: trees.iter().map(|tree| tree.total().samples).sum(),
        }
    }

    fn summary(&self, cost: &Observed) -> Runs {
        Runs {
            count: self.runs.len(),
            samples: self.samples,
            cost: cost.mean,
        }
    }

    fn functions(&self) -> BTreeMap<Key, Side> {
        let sides = self.runs.iter().flatten();
        sides.map(|(key, side)| (key.clone(), *side)).collect()
    }

    fn observed(&self, key: &Key) -> Observed {
        let sides = self.runs.iter().map(|run| run.get(key));
        let shares = sides.clone().map(|side| side.map_or(0.0, |side| side.own));
        let hits = sides.flatten().map(|side| side.samples).sum();
        Observed::new(shares.collect(), sampling_variance(hits, self.samples))
    }
}

/// A quantity over the runs of a side.
struct Observed {
    /// In each run.
    values: Vec<f64>,
    mean: f64,
    /// Variance of the mean, by sampling alone.
    sampling: f64,
}

impl Observed {
    fn new(values: Vec<f64>, sampling: f64) -> Self {
        Self {
            mean: mean(&values),
            values,
            sampling,
        }
    }

    fn cost(trees: &[CallTree<'_>]) -> Self {
        let costs: Vec<f64> = trees.iter().map(|tree| tree.total().value as f64).collect();
        let samples: u64 = trees.iter().map(|tree| tree.total().samples).sum();
        // A run ends somewhere between two samples.
        let sample = costs.iter().sum::<f64>() / samples.max(1) as f64;
        let sampling = sample * sample / costs.len() as f64;
        Self::new(costs, sampling)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squared_deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The variance of a share that `hits` of `samples` show. One added hit prevents that an unseen
/// function is certain to be absent.
fn sampling_variance(hits: u64, samples: u64) -> f64 {
    let samples = samples as f64 + 2.0;
    let share = (hits as f64 + 1.0) / samples;
    share * (1.0 - share) / samples
}

/// The noise in the difference of two means.
struct Noise {
    order: RunOrder,
    /// The bound for runs, in standard errors: few runs show their own spread only roughly.
    runs: f64,
    /// The bound for sampling, in standard errors.
    sampling: f64,
}

impl Noise {
    /// That chance exceeds with the probability `level`.
    fn new(level: f64, before: &[CallTree<'_>], after: &[CallTree<'_>], order: RunOrder) -> Self {
        let freedom = match order {
            RunOrder::Grouped => before.len() + after.len() - 2,
            RunOrder::Paired => before.len() - 1,
        };
        Self {
            order,
            runs: student::critical(freedom, level),
            sampling: student::critical(KNOWN, level),
        }
    }

    /// The noise between the runs, and at least that of sampling alone: few runs may agree by
    /// chance.
    fn of(&self, before: &Observed, after: &Observed) -> f64 {
        let between_runs = match self.order {
            RunOrder::Grouped => grouped_variance(&before.values, &after.values),
            RunOrder::Paired => paired_variance(&before.values, &after.values),
        };
        let sampling = before.sampling + after.sampling;
        f64::max(
            self.runs * between_runs.sqrt(),
            self.sampling * sampling.sqrt(),
        )
    }
}

/// The variance of the difference of two independent groups' means.
fn grouped_variance(before: &[f64], after: &[f64]) -> f64 {
    let (first, second) = (before.len() as f64, after.len() as f64);
    let deviations = squared_deviations(before) + squared_deviations(after);
    deviations / (first + second - 2.0) * (1.0 / first + 1.0 / second)
}

/// The variance of the mean difference of partners.
fn paired_variance(before: &[f64], after: &[f64]) -> f64 {
    let differences: Vec<f64> = before.iter().zip(after).map(|(a, b)| b - a).collect();
    let pairs = differences.len() as f64;
    squared_deviations(&differences) / (pairs - 1.0) / pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::{TestProfile, everything};

    /// Runs of 1,000 samples, this many of which are in `a`.
    fn runs(hits: &[usize]) -> Vec<SymbolizedProfile> {
        let run = |&hits: &usize| {
            let samples = [vec!["t a 1"; hits], vec!["t b 1"; 1000 - hits]].concat();
            TestProfile::of(&samples)
        };
        hits.iter().map(run).collect()
    }

    fn compare(before: &[usize], after: &[usize]) -> Result<RunsDiff, Error> {
        diff(&runs(before), &runs(after))
    }

    fn diff(before: &[SymbolizedProfile], after: &[SymbolizedProfile]) -> Result<RunsDiff, Error> {
        ordered(before, after, RunOrder::Grouped)
    }

    fn ordered(
        before: &[SymbolizedProfile],
        after: &[SymbolizedProfile],
        order: RunOrder,
    ) -> Result<RunsDiff, Error> {
        let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
        let before: Vec<_> = before.iter().map(tree).collect();
        let after: Vec<_> = after.iter().map(tree).collect();
        RunsDiff::new(&before, &after, order, 0.01)
    }

    fn check(before: &[usize], after: &[usize], expected: bool) {
        let diff = compare(before, after).unwrap();
        let row = diff.rows.iter().find(|row| &*row.function == "a").unwrap();
        assert_eq!(row.is_certain(), expected, "{before:?} {after:?} {row:?}");
    }

    #[test]
    fn growth_beyond_the_noise_is_certain() {
        check(&[100, 102, 98, 101, 99], &[130, 128, 133, 131, 129], true);
        check(&[100, 102, 98, 101, 99], &[103, 101, 99, 104, 100], false);
    }

    #[test]
    fn runs_that_differ_make_noise() {
        check(&[60, 140, 80, 150, 70], &[130, 128, 133, 131, 129], false);
    }

    #[test]
    fn runs_that_agree_by_chance_keep_the_noise_of_sampling() {
        check(&[100, 100], &[112, 112], false);
    }

    /// Runs of one function with this many samples.
    fn check_cost(before: &[usize], after: &[usize], expected: (f64, bool)) {
        let run = |&samples: &usize| TestProfile::of(&vec!["t a 1"; samples]);
        let (before, after): (Vec<_>, Vec<_>) = (
            before.iter().map(run).collect(),
            after.iter().map(run).collect(),
        );
        let diff = diff(&before, &after).unwrap();
        let change = (diff.cost_change() * 1000.0).round() / 10.0;
        assert_eq!((change, diff.is_cost_certain()), expected, "{diff:?}");
        assert!(diff.rows.iter().all(|row| !row.is_certain()));
    }

    #[test]
    fn a_run_that_costs_more_is_certain_beyond_the_noise() {
        let before = [1000, 1010, 990, 1005, 995];
        check_cost(&before, &[1400, 1380, 1390, 1385, 1395], (39.0, true));
        check_cost(&before, &[1012, 1004, 998, 1001, 1005], (0.4, false));
        check_cost(&before, &[1900, 1000, 1020, 1990, 1040], (39.0, false));
    }

    #[test]
    fn runs_of_few_samples_have_a_cost_known_to_a_sample() {
        check_cost(&[10, 10, 10], &[11, 11, 11], (10.0, false));
        check_cost(&[10, 10, 10], &[30, 30, 30], (200.0, true));
    }

    /// The machine changes from run to run, for both groups in the same way.
    #[test]
    fn common_changes_of_pairs_are_no_noise() {
        let before = runs(&[100, 160, 120, 180, 140, 110]);
        let check = |after: &[usize], order, expected: bool| {
            let diff = ordered(&before, &runs(after), order).unwrap();
            let row = diff.rows.iter().find(|row| &*row.function == "a").unwrap();
            assert_eq!(row.is_certain(), expected, "{after:?} {order:?} {row:?}");
        };
        let grown = [160, 221, 178, 241, 200, 171];
        check(&grown, RunOrder::Paired, true);
        check(&grown, RunOrder::Grouped, false);
        check(&[101, 163, 119, 177, 142, 111], RunOrder::Paired, false);
        // Unequal differences are noise, however the runs are paired.
        check(&[240, 165, 160, 250, 145, 111], RunOrder::Paired, false);
    }

    #[test]
    fn runs_without_partners_are_refused() {
        let diff = ordered(&runs(&[1, 2, 3]), &runs(&[1, 2]), RunOrder::Paired);
        assert!(matches!(diff, Err(Error::UnpairedRuns)));
    }

    #[test]
    fn one_run_says_nothing_of_noise() {
        assert!(matches!(compare(&[1], &[1, 2]), Err(Error::TooFewRuns)));
    }
}
