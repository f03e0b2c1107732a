//! Numbers for people.

use crate::profile::{Unit, Weight};
pub(crate) use crate::thousands::{counted, grouped};

/// A share from 0 to 1 as a percentage with two decimals and no sign.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// Whether there are prefixes for amounts of this unit.
pub(crate) fn is_scaled(unit: &Unit) -> bool {
    *unit == Unit::Nanoseconds || unit.name() == "bytes"
}

/// A single amount, in three digits with its unit: `237 ms`, `1.50 MiB`, `11,900 cycles`.
pub(crate) fn scaled(amount: u64, unit: &Unit) -> String {
    let (names, step): (&[&str], f64) = match unit {
        Unit::Nanoseconds => (&["ns", "µs", "ms", "s"], 1000.0),
        _ if is_scaled(unit) => (&["bytes", "KiB", "MiB", "GiB", "TiB"], 1024.0),
        _ => return format!("{} {}", grouped(amount), unit.name()),
    };
    let (mut value, mut index) = (amount as f64, 0);
    while value >= step - 0.5 && index + 1 < names.len() {
        value /= step;
        index += 1;
    }
    let decimals = match value {
        _ if index == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", names[index])
}

/// The format of the weights of one view: all in the same unit, so that they can be compared.
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
    fn amounts_have_three_digits_and_a_unit() {
        let check = |amount, expected: &str| {
            assert_eq!(scaled(amount, &Unit::Nanoseconds), expected);
        };
        check(0, "0 ns");
        check(999, "999 ns");
        check(1_000, "1.00 µs");
        check(35_149, "35.1 µs");
        check(999_400, "999 µs");
        check(999_700, "1.00 ms");
        check(237_237_237, "237 ms");
        check(1_237_000_000, "1.24 s");
        check(3_600_000_000_000, "3600 s");
        let bytes = Unit::Count("bytes".into());
        assert_eq!(scaled(3 << 29, &bytes), "1.50 GiB");
        assert_eq!(
            scaled(12_000, &Unit::Count("cycles".into())),
            "12,000 cycles"
        );
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
