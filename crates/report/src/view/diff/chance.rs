//! The probability that chance alone makes a change.
//!
//! Samples of unequal weight say less than their number: a function of one long wait and a hundred
//! short ones may owe its share to the long one. Sums of squares tell how many equal samples would
//! say as much.

use super::{Basis, Key, Row, Side, exact, gaps};

/// The chances of changes between recordings with these wholes.
pub(super) struct Chance {
    wholes: [Side; 2],
    /// The weight in either one that is as much evidence in both.
    units: [f64; 2],
    basis: Basis,
}

/// A part of a recording: its weight, and the squared weights of its samples, added up.
#[derive(Clone, Copy)]
struct Part {
    weight: f64,
    squares: f64,
}

impl Chance {
    /// `scales` are the shares of a weight of 1.
    pub(super) fn new(wholes: [Side; 2], scales: [f64; 2], basis: Basis) -> Self {
        // Samples of a clock weigh the same, and the less, the higher its rate is. A wait weighs
        // what it lasts, in both.
        let units = match wholes.iter().all(is_regular) {
            true => wholes.map(|whole| whole.own / whole.samples as f64),
            false => scales,
        };
        Self {
            wholes,
            units,
            basis,
        }
    }

    pub(super) fn row(&self, (function, module): Key, (before, after): (Side, Side)) -> Row {
        let sides = [before, after];
        let [own, own_after] = gaps::own_shares(sides, self.wholes);
        let [total, total_after] = gaps::total_shares(sides, self.wholes);
        Row {
            function,
            module,
            before,
            after,
            chance: self.of([
                self.part(0, (before.own, before.squares), own),
                self.part(1, (after.own, after.squares), own_after),
            ]),
            total_chance: self.of([
                self.part(0, (before.total, before.total_squares), total),
                self.part(1, (after.total, after.total_squares), total_after),
            ]),
        }
    }

    /// A part of one recording with another weight, of samples that weigh as much.
    fn part(&self, side: usize, (weight, squares): (f64, f64), other: f64) -> Part {
        let whole = self.wholes[side];
        let squares = match weight > 0.0 {
            true => squares / weight * other,
            false => whole.squares / whole.own * other,
        };
        Part {
            weight: other,
            squares,
        }
    }

    /// The probability of a change of a part as large as this one.
    fn of(&self, parts: [Part; 2]) -> f64 {
        let parts = self.normalized(parts);
        let inside = equal_samples(parts);
        match self.basis {
            Basis::Weight => {
                let outside = self.outside(parts);
                exact::same_share(inside, equal_samples(outside))
            }
            Basis::Run | Basis::Rate => {
                let [before, after] = self.units;
                // The less a sample weighs, the more of them the same work has.
                exact::same_rate(inside, before / (before + after))
            }
        }
    }

    /// In the units of each recording.
    fn normalized(&self, parts: [Part; 2]) -> [Part; 2] {
        let [before, after] = self.units;
        let [first, second] = parts;
        [first.divided(before), second.divided(after)]
    }

    /// All but these parts.
    fn outside(&self, parts: [Part; 2]) -> [Part; 2] {
        let wholes = self.normalized(self.wholes.map(|whole| Part {
            weight: whole.own,
            squares: whole.squares,
        }));
        let ([first, second], [all, all_after]) = (parts, wholes);
        [all.without(first), all_after.without(second)]
    }
}

/// Whether weights vary less than those of an exponential distribution do.
fn is_regular(whole: &Side) -> bool {
    whole.squares * whole.samples as f64 <= 2.0 * whole.own * whole.own
}

/// How many samples of equal weight would say as much as each of these parts: the weights vary in
/// both as they do in both together.
fn equal_samples([before, after]: [Part; 2]) -> [f64; 2] {
    let (weight, squares) = (before.weight + after.weight, before.squares + after.squares);
    // Nothing is no evidence.
    let is_known = squares > 0.0;
    if !is_known {
        return [0.0; 2];
    }
    [before, after].map(|part| part.weight * weight / squares)
}

impl Part {
    fn divided(self, by: f64) -> Self {
        Self {
            weight: self.weight / by,
            squares: self.squares / by / by,
        }
    }

    /// Rounding, and functions that count twice, must not make less than nothing.
    fn without(self, other: Self) -> Self {
        Self {
            weight: (self.weight - other.weight).max(0.0),
            squares: (self.squares - other.squares).max(0.0),
        }
    }
}
