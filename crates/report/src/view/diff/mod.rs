//! The changes between two recordings, function by function, and whether they exceed noise.

mod builds;
mod chance;
mod exact;
mod gaps;
mod growth;
mod runs;
mod student;

pub use growth::LimitedShare;
pub use runs::{RunOrder, Runs, RunsDiff, RunsRow};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calltree::CallTree;
use crate::error::Error;
use crate::profile::{Event, Unit, Weight};
use crate::view::flat::{self, Flat, Squares};

use chance::Chance;
use gaps::Unsure;

/// The share of comparisons in which chance may look like a certain change, whatever the number of
/// functions that are judged.
const FALSE_ALARMS: f64 = 0.01;

/// Functions of two recordings side by side, the largest change of self weight first.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The basis of the comparison.
    pub basis: Basis,
    /// The weight of everything before.
    pub before: Weight,
    /// The weight of everything after.
    pub after: Weight,
    /// The names of the events before and after, if both are known and they differ.
    pub events: Option<(String, String)>,
    /// Everything, compared like a function.
    pub whole: Row,
    /// One row for each function of either.
    pub rows: Vec<Row>,
}

/// The basis for comparing two recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// Shares of each recording's whole weight: recordings of any length compare.
    #[default]
    Weight,
    /// The weights themselves, as shares of the first one's whole: each recording is one run of
    /// the same work.
    Run,
    /// Weights by time, from the first sample to the last one, as shares of the first one's whole:
    /// each recording is a part of continuous work.
    Rate,
}

/// A function before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub function: Arc<str>,
    /// The module it is in.
    pub module: Arc<str>,
    /// In the first recording.
    pub before: Side,
    /// In the second recording.
    pub after: Side,
    /// The probability that chance alone changes the self weight as much.
    pub chance: f64,
    /// The same for its total.
    pub total_chance: f64,
}

/// A function in one recording. Shares are as the [`Basis`] says; the first recording's are
/// always those of its whole, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Self share.
    pub own: f64,
    /// Share with all it called.
    pub total: f64,
    /// Samples in the function itself.
    pub samples: u64,
    /// Samples with the function anywhere on their stack.
    pub total_samples: u64,
    /// The squared shares of the samples that `own` adds up.
    pub squares: f64,
    /// The squared shares of those that `total` adds up.
    pub total_squares: f64,
    /// What of it is in stacks that are not whole.
    pub unsure: Unsure,
}

/// Whether a change can be chance.
///
/// It covers the noise of sampling, and what is missing in the stacks of only one recording; other
/// differences between runs show only in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// Chance alone would do this in more than 5 of 100 pairs of recordings.
    Noise,
    /// In 5 of 100 or fewer.
    Likely,
    /// In 1 of 100 or fewer.
    Clear,
}

impl Certainty {
    /// Its word in all outputs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Likely => "likely",
            Self::Clear => "clear",
        }
    }
}

impl Row {
    /// Change of the self share.
    pub fn change(&self) -> f64 {
        self.after.own - self.before.own
    }

    /// Change of the share with all it called.
    pub(crate) fn total_change(&self) -> f64 {
        self.after.total - self.before.total
    }

    /// How sure the change of the self weight is.
    pub(crate) fn certainty(&self) -> Certainty {
        Certainty::of(self.chance)
    }

    /// How sure the change of its total is.
    pub(crate) fn total_certainty(&self) -> Certainty {
        Certainty::of(self.total_chance)
    }
}

impl Diff {
    /// Compares two trees.
    ///
    /// # Errors
    /// [`Error::DifferentEvents`] if these measure different things, [`Error::Lacking`] if there
    /// are no times for rates.
    pub fn new(before: &CallTree<'_>, after: &CallTree<'_>, basis: Basis) -> Result<Self, Error> {
        let scales = Scales::new(before, after, basis)?;
        let mut sides: BTreeMap<Key, (Side, Side)> = BTreeMap::new();
        let (first, second) = (by_name(before, scales.before), by_name(after, scales.after));
        let first = builds::renamed(first, &second);
        for (key, side) in borrow_modules(&first, &second) {
            sides.entry(key).or_default().0 = side;
        }
        for (key, side) in borrow_modules(&second, &first) {
            sides.entry(key).or_default().1 = side;
        }
        let all = |tree: &CallTree<'_>, scale| {
            let squares = tree.nodes().map(|(id, _)| tree.squares(id)).sum();
            let squares = Squares {
                own: squares,
                total: squares,
            };
            let (_, unsure) = gaps::unsure(tree);
            Side::of((tree.total(), tree.total()), squares, unsure, scale)
        };
        let wholes = (all(before, scales.before), all(after, scales.after));
        let chance = Chance::new(wholes.into(), [scales.before, scales.after], basis);
        let mut rows: Vec<Row> = sides
            .into_iter()
            .map(|(key, sides)| chance.row(key, sides))
            .collect();
        // Equal changes stay in the order of names.
        rows.sort_by(|a, b| {
            let by_own = b.change().abs().total_cmp(&a.change().abs());
            by_own.then_with(|| b.total_change().abs().total_cmp(&a.total_change().abs()))
        });
        Ok(Self {
            basis,
            before: before.total(),
            after: after.total(),
            events: different_names(before.event(), after.event()),
            whole: chance.row((Arc::from("all"), Arc::from("")), wholes),
            rows,
        })
    }
}

/// The factors of weights.
struct Scales {
    before: f64,
    after: f64,
}

impl Scales {
    fn new(before: &CallTree<'_>, after: &CallTree<'_>, basis: Basis) -> Result<Self, Error> {
        let same = before.event().unit == after.event().unit;
        if basis == Basis::Weight || same {
            check_events(before, after)?;
        } else {
            return Err(different_events(before, after));
        }
        let whole = |tree: &CallTree<'_>| tree.total().value.max(1) as f64;
        let after = match basis {
            Basis::Weight => 1.0 / whole(after),
            Basis::Run => 1.0 / whole(before),
            Basis::Rate => seconds(before)? / seconds(after)? / whole(before),
        };
        Ok(Self {
            before: 1.0 / whole(before),
            after,
        })
    }
}

/// From the first sample of the tree's event to the last.
fn seconds(tree: &CallTree<'_>) -> Result<f64, Error> {
    let lacking = Error::Lacking {
        asked: "--normalize rate",
        lacking: "times",
    };
    let profile = tree.symbolized().profile();
    if profile.missing_data.times {
        return Err(lacking);
    }
    let times = || {
        let samples = profile.samples.iter();
        samples.filter(|sample| profile.events.get(usize::from(sample.event)) == Some(tree.event()))
    };
    let first = times().map(|sample| sample.time).min();
    let last = times().map(|sample| sample.time).max();
    match (first, last) {
        (Some(first), Some(last)) if last > first => Ok((last - first) as f64 / 1e9),
        _ => Err(lacking),
    }
}

impl Side {
    fn of((own, total): (Weight, Weight), squares: Squares, unsure: Unsure, scale: f64) -> Self {
        Self {
            own: own.value as f64 * scale,
            total: total.value as f64 * scale,
            samples: own.samples,
            total_samples: total.samples,
            squares: squares.own * scale * scale,
            total_squares: squares.total * scale * scale,
            unsure: unsure.scaled(scale),
        }
    }
}

/// Refuses to compare events that measure different things.
pub(crate) fn check_events(before: &CallTree<'_>, after: &CallTree<'_>) -> Result<(), Error> {
    match before.event().compares_with(after.event()) {
        true => Ok(()),
        false => Err(different_events(before, after)),
    }
}

/// The names of two events, if they differ; folded stacks have none.
fn different_names(before: &Event, after: &Event) -> Option<(String, String)> {
    let is_known = [before, after]
        .iter()
        .all(|event| event.unit != Unit::Unstated);
    let differ = is_known && before.name != after.name;
    differ.then(|| (before.name.clone(), after.name.clone()))
}

fn different_events(before: &CallTree<'_>, after: &CallTree<'_>) -> Error {
    Error::DifferentEvents {
        before: before.event().name.clone(),
        after: after.event().name.clone(),
    }
}

type Key = (Arc<str>, Arc<str>);

/// The functions of a tree; those of one name and module as one.
fn by_name(tree: &CallTree<'_>, scale: f64) -> BTreeMap<Key, Side> {
    let flat = Flat::new(tree);
    let squares = flat::squares(tree);
    let (unsure, _) = gaps::unsure(tree);
    let mut sides: BTreeMap<Key, Side> = BTreeMap::new();
    for row in &flat.rows {
        let function = &tree.symbolized()[row.function];
        let key = (Arc::clone(&function.name), Arc::clone(&function.module));
        let side = sides.entry(key).or_default();
        let index = row.function.index();
        let more = Side::of((row.own, row.total), squares[index], unsure[index], scale);
        side.own += more.own;
        side.total += more.total;
        side.samples += more.samples;
        side.total_samples += more.total_samples;
        side.squares += more.squares;
        side.total_squares += more.total_squares;
        side.unsure += more.unsure;
    }
    sides
}

/// The functions of one side. Those whose module is unknown get that of the other side's function
/// of this name, if there is only one: folded stacks have no modules.
fn borrow_modules(of: &BTreeMap<Key, Side>, from: &BTreeMap<Key, Side>) -> BTreeMap<Key, Side> {
    let module_of = |name: &Arc<str>| {
        let start = (Arc::clone(name), Arc::from(""));
        let same_name = from
            .range(start..)
            .take_while(|((other, _), _)| other == name);
        let mut modules = same_name.map(|((_, module), _)| module);
        modules.next().filter(|_| modules.next().is_none()).cloned()
    };
    let named = |(key, side): (&Key, &Side)| {
        let (name, module) = key;
        let borrowed = module.is_empty().then(|| module_of(name)).flatten();
        // One that is there already must not be overwritten.
        let key = match borrowed.map(|module| (Arc::clone(name), module)) {
            Some(key) if !of.contains_key(&key) => key,
            _ => key.clone(),
        };
        (key, *side)
    };
    of.iter().map(named).collect()
}

impl Certainty {
    /// The certainty of a change that chance makes with this probability.
    fn of(chance: f64) -> Self {
        if chance <= 0.01 {
            Self::Clear
        } else if chance <= 0.05 {
            Self::Likely
        } else {
            Self::Noise
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, everything};

    /// Expects for `a` this change of its self share in points, and this certainty.
    fn check_basis(basis: Basis, before: &[&str], after: &[&str], expected: (f64, Certainty)) {
        let (before, after) = (TestProfile::of(before), TestProfile::of(after));
        let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
        let diff = Diff::new(&tree(&before), &tree(&after), basis).unwrap();
        let row = diff.rows.iter().find(|row| &*row.function == "a").unwrap();
        let change = (row.change() * 1000.0).round() / 10.0;
        assert_eq!((change, row.certainty()), expected, "{basis:?} {diff:?}");
    }

    #[test]
    fn bases() {
        let before = [vec!["t a 1"; 100], vec!["t b 1"; 300]].concat();
        let after = [vec!["t a 1"; 200], vec!["t b 1"; 600]].concat();
        check_basis(Basis::Weight, &before, &after, (0.0, Certainty::Noise));
        check_basis(Basis::Run, &before, &after, (25.0, Certainty::Clear));
        // Samples are a millisecond apart, whatever they weigh.
        let (before, after) = (["t a 1"; 11], ["t a 1"; 21]);
        check_basis(Basis::Rate, &before, &after, (-4.5, Certainty::Noise));
        let heavier = ["t a 20"; 11];
        check_basis(Basis::Rate, &before, &heavier, (1900.0, Certainty::Clear));
    }

    /// Expects for `a` this certainty of its self share, by shares and by runs.
    fn check_weights(before: &[(usize, &str)], after: &[(usize, &str)], expected: [Certainty; 2]) {
        let lines = |counts: &[(usize, &str)]| {
            let lines = counts.iter().map(|&(count, line)| vec![line; count]);
            TestProfile::of(&lines.collect::<Vec<_>>().concat())
        };
        for (before, after) in [(before, after), (after, before)] {
            let (first, second) = (lines(before), lines(after));
            let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
            let found = [Basis::Weight, Basis::Run].map(|basis| {
                let diff = Diff::new(&tree(&first), &tree(&second), basis).unwrap();
                let row = diff.rows.iter().find(|row| &*row.function == "a").unwrap();
                row.certainty()
            });
            assert_eq!(found, expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn as_many_waits_that_are_longer_are_a_change() {
        let before = [(100, "t a 2"), (100, "t b 10")];
        let after = [(100, "t a 60"), (100, "t b 10")];
        check_weights(&before, &after, [Certainty::Clear; 2]);
    }

    #[test]
    fn short_waits_among_long_ones_are_a_change() {
        let before = [(1000, "t a 1"), (20, "t b 100")];
        let after = [(20, "t b 100"), (20, "t c 1")];
        check_weights(&before, &after, [Certainty::Clear; 2]);
    }

    #[test]
    fn one_long_wait_is_chance() {
        let before = [(100, "t a 1"), (1000, "t b 1")];
        let after = [(100, "t a 1"), (1, "t a 1000"), (1000, "t b 1")];
        check_weights(&before, &after, [Certainty::Noise; 2]);
        // So is one that another function has.
        let after = [(100, "t a 1"), (1, "t b 1000"), (1000, "t b 1")];
        check_weights(&before, &after, [Certainty::Noise; 2]);
    }

    #[test]
    fn recordings_of_different_rates_compare() {
        let before = [(100, "t a 10"), (300, "t b 10")];
        let after = [(1000, "t a 1"), (3000, "t b 1")];
        check_weights(&before, &after, [Certainty::Noise; 2]);
        let after = [(1500, "t a 1"), (2500, "t b 1")];
        check_weights(&before, &after, [Certainty::Clear; 2]);
    }

    #[test]
    fn waits_are_no_cpu_time() {
        let [on, off] = ["cpu-clock:u", "offcpu-time"].map(|event| {
            let mut test = TestProfile::new();
            test.profile.events[0].name = event.into();
            test.line("t a 1");
            test.finish()
        });
        let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
        let refused = Diff::new(&tree(&on), &tree(&off), Basis::Weight).unwrap_err();
        let expected = "cpu-clock:u and offcpu-time measure different things; compare recordings \
                        of the same event";
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn few_samples_are_chance() {
        let before = [(23, "t a 1")];
        let after = [(2, "t a 1"), (1, "t b 1")];
        check_weights(&before, &after, [Certainty::Noise, Certainty::Clear]);
        let none = [(2000, "t b 1")];
        check_weights(
            &none,
            &[(4, "t a 1"), (1996, "t b 1")],
            [Certainty::Noise; 2],
        );
        check_weights(
            &none,
            &[(7, "t a 1"), (1993, "t b 1")],
            [Certainty::Likely; 2],
        );
    }
}
