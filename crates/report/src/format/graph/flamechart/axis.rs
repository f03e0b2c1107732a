//! The time axis above the lanes.

use std::fmt::Write as _;

use crate::format::graph::page::MARGIN;

/// The space above the lanes, in pixels.
pub(super) const HEIGHT: usize = 22;

/// Draws the axis of this many nanoseconds, with lines through all lanes, into a box (top and
/// height) in pixels.
pub(super) fn draw(duration: u64, (top, height): (usize, usize), width: usize) -> String {
    let mut axis = format!(
        "<svg id=\"axis\" x=\"{MARGIN}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
         overflow=\"visible\">"
    );
    let step = step(duration);
    for tick in 0..=duration / step {
        let x = (tick * step) as f64 / duration as f64 * 100.0;
        // Writing to a `String` cannot fail.
        let _ = write!(
            axis,
            "<line x1=\"{x:.4}%\" x2=\"{x:.4}%\" y1=\"14\" y2=\"{height}\" stroke=\"rgb(215,215,215)\"/>\
             <text x=\"{x:.4}%\" y=\"11\" fill=\"rgb(90,90,90)\">{}</text>",
            label(tick * step, step)
        );
    }
    axis + "</svg>"
}

/// 1, 2 or 5 times a power of ten: the smallest that gives at most eight ticks.
fn step(duration: u64) -> u64 {
    const TICKS: u64 = 8;
    let mut ten = 1_u64;
    loop {
        for step in [ten, 2 * ten, 5 * ten] {
            if duration / step <= TICKS {
                return step;
            }
        }
        match ten.checked_mul(10).filter(|ten| *ten < u64::MAX / 10) {
            Some(next) => ten = next,
            None => return 5 * ten,
        }
    }
}

/// A time in the unit that suits the step.
fn label(nanoseconds: u64, step: u64) -> String {
    let (unit, length) = match step {
        0..100 => ("ns", 1),
        100..100_000 => ("µs", 1_000),
        100_000..100_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let decimals = usize::from(!step.is_multiple_of(length));
    format!("{:.decimals$} {unit}", nanoseconds as f64 / length as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let check = |duration, expected: &[&str]| {
            let step = step(duration);
            let ticks = (0..=duration / step).map(|tick| label(tick * step, step));
            assert_eq!(ticks.collect::<Vec<_>>(), expected);
        };
        check(1, &["0 ns", "1 ns"]);
        check(45_000_000, &["0 ms", "10 ms", "20 ms", "30 ms", "40 ms"]);
        check(1_900_000_000, &["0.0 s", "0.5 s", "1.0 s", "1.5 s"]);
        check(
            7_000_000_000,
            &["0 s", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s", "7 s"],
        );
        assert!(step(u64::MAX) > u64::MAX / 20);
    }
}
