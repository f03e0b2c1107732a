//! What changed between two recordings: function by function, and whether it is more than noise.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calltree::CallTree;
use crate::error::Error;
use crate::profile::Weight;
use crate::view::flat::Flat;

/// Functions of two recordings side by side, the largest change of self share first.
///
/// Shares of each recording's whole are compared, so recordings of different length compare too.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The weight of everything before.
    pub before: Weight,
    /// The weight of everything after.
    pub after: Weight,
    /// One row for each function of either.
    pub rows: Vec<Row>,
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
    /// How sure the change of the self share is.
    pub certainty: Certainty,
}

/// A function in one recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Self share of everything, from 0 to 1.
    pub own: f64,
    /// Share with all it called, from 0 to 1.
    pub total: f64,
    /// Samples taken in the function itself.
    pub samples: u64,
}

/// Whether a change can be chance.
///
/// The test is that of two proportions: samples in the function of all samples, before and after.
/// It knows the noise of sampling only; that runs differ for other reasons takes more runs to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Chance alone would do this in more than 5 of 100 pairs of recordings.
    Noise,
    /// In 5 of 100 or fewer.
    Likely,
    /// In 1 of 100 or fewer.
    Clear,
}

impl Row {
    /// Change of the self share, from -1 to 1.
    pub fn change(&self) -> f64 {
        self.after.own - self.before.own
    }
}

impl Diff {
    /// Compares two trees.
    ///
    /// # Errors
    /// [`Error::DifferentUnits`] if their weights count different things.
    pub fn new(before: &CallTree<'_>, after: &CallTree<'_>) -> Result<Self, Error> {
        check_units(before, after)?;
        let mut sides: BTreeMap<Key, (Side, Side)> = BTreeMap::new();
        for (key, side) in by_name(before) {
            sides.entry(key).or_default().0 = side;
        }
        for (key, side) in by_name(after) {
            sides.entry(key).or_default().1 = side;
        }
        let totals = (before.total(), after.total());
        let row = |((function, module), (before, after)): (Key, (Side, Side))| Row {
            function,
            module,
            before,
            after,
            certainty: certainty(
                (before.samples, totals.0.samples),
                (after.samples, totals.1.samples),
            ),
        };
        let mut rows: Vec<Row> = sides.into_iter().map(row).collect();
        // Equal changes stay in the order of names.
        rows.sort_by(|a, b| {
            let by_own = b.change().abs().total_cmp(&a.change().abs());
            by_own.then_with(|| by_total(b).total_cmp(&by_total(a)))
        });
        Ok(Self {
            before: totals.0,
            after: totals.1,
            rows,
        })
    }
}

fn by_total(row: &Row) -> f64 {
    (row.after.total - row.before.total).abs()
}

/// Refuses to compare what does not count the same.
pub(crate) fn check_units(before: &CallTree<'_>, after: &CallTree<'_>) -> Result<(), Error> {
    let (first, second) = (before.event(), after.event());
    match first.unit == second.unit {
        true => Ok(()),
        false => Err(Error::DifferentUnits {
            before: first.name.clone(),
            after: second.name.clone(),
        }),
    }
}

type Key = (Arc<str>, Arc<str>);

/// The functions of a tree; those of one name and module as one.
fn by_name(tree: &CallTree<'_>) -> BTreeMap<Key, Side> {
    let flat = Flat::new(tree);
    let mut sides: BTreeMap<Key, Side> = BTreeMap::new();
    for row in &flat.rows {
        let function = &tree.symbolized()[row.function];
        let key = (Arc::clone(&function.name), Arc::clone(&function.module));
        let side = sides.entry(key).or_default();
        side.own += row.own.share_of(flat.total);
        side.total += row.total.share_of(flat.total);
        side.samples += row.own.samples;
    }
    sides
}

/// The two-proportion z test of `hits` of `samples`, before and after.
fn certainty(before: (u64, u64), after: (u64, u64)) -> Certainty {
    let (hits, samples) = (
        [before.0 as f64, after.0 as f64],
        [before.1 as f64, after.1 as f64],
    );
    let pooled = (hits[0] + hits[1]) / (samples[0] + samples[1]);
    let variance = pooled * (1.0 - pooled) * (1.0 / samples[0] + 1.0 / samples[1]);
    let distance = (hits[1] / samples[1] - hits[0] / samples[0]).abs();
    let z = distance / variance.sqrt();
    // Not a number where there is nothing to compare.
    match (z.partial_cmp(&2.576), z.partial_cmp(&1.960)) {
        (Some(Ordering::Greater | Ordering::Equal), _) => Certainty::Clear,
        (_, Some(Ordering::Greater | Ordering::Equal)) => Certainty::Likely,
        _ => Certainty::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_and_change() {
        let check = |before, after, expected| {
            assert_eq!(certainty(before, after), expected, "{before:?} {after:?}");
            assert_eq!(certainty(after, before), expected, "{after:?} {before:?}");
        };
        check((100, 1000), (100, 1000), Certainty::Noise);
        check((100, 1000), (110, 1000), Certainty::Noise);
        check((100, 1000), (130, 1000), Certainty::Likely);
        check((100, 1000), (150, 1000), Certainty::Clear);
        check((1, 10), (3, 10), Certainty::Noise);
        check((0, 10), (0, 10), Certainty::Noise);
        check((10, 10), (10, 10), Certainty::Noise);
        check((0, 0), (1, 10), Certainty::Noise);
    }
}
