//! Numbers for people.

use crate::profile::{Unit, Weight};

/// A number with its thousands grouped: `11,900`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share from 0 to 1 as a percentage with two decimals and no sign.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// How the weights of one view are written: all in the same unit, so that they compare at sight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<'a> {
    unit: &'a Unit,
    time: Time,
}

#[derive(Clone, Copy, Debug)]
enum Time {
    Seconds,
    Milliseconds,
    Microseconds,
}

impl<'a> Scale<'a> {
    /// The scale that suits weights up to `largest`.
    pub(crate) fn new(unit: &'a Unit, largest: Weight) -> Self {
        let time = match largest.value {
            100_000_000_000.. => Time::Seconds,
            10_000_000.. => Time::Milliseconds,
            _ => Time::Microseconds,
        };
        Self { unit, time }
    }

    /// The unit that the numbers are in.
    pub(crate) fn unit(&self) -> &str {
        match (self.unit, self.time) {
            (Unit::Nanoseconds, Time::Seconds) => "s",
            (Unit::Nanoseconds, Time::Milliseconds) => "ms",
            (Unit::Nanoseconds, Time::Microseconds) => "µs",
            (unit, _) => unit.name(),
        }
    }

    /// A weight as a number in that unit.
    pub(crate) fn number(&self, weight: Weight) -> String {
        let nanoseconds = weight.value as f64;
        match (self.unit, self.time) {
            (Unit::Nanoseconds, Time::Seconds) => format!("{:.2}", nanoseconds / 1e9),
            (Unit::Nanoseconds, Time::Milliseconds) => format!("{:.1}", nanoseconds / 1e6),
            (Unit::Nanoseconds, Time::Microseconds) => format!("{:.1}", nanoseconds / 1e3),
            (Unit::Count(_) | Unit::Unstated, _) => grouped(weight.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn scales() {
        let check = |unit: &Unit, value, expected: &str| {
            let weight = Weight { value, samples: 1 };
            let scale = Scale::new(unit, weight);
            assert_eq!(
                format!("{} {}", scale.number(weight), scale.unit()),
                expected
            );
        };
        check(&Unit::Nanoseconds, 1_500, "1.5 µs");
        check(&Unit::Nanoseconds, 1_500_000_000, "1500.0 ms");
        check(&Unit::Nanoseconds, 150_000_000_000, "150.00 s");
        check(&Unit::Count("cycles".into()), 1_500_000, "1,500,000 cycles");
    }
}
