//! Student's t distribution, for whole degrees of freedom (Abramowitz and Stegun, 26.7.3, 26.7.4).

use std::f64::consts::PI;

/// The `t` that chance exceeds, up or down, with the probability `level`.
pub(super) fn critical(freedom: usize, level: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    // Each round halves the interval.
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match 1.0 - within(freedom, middle) > level {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The probability of a value between `-t` and `t`.
fn within(freedom: usize, t: f64) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let first = if freedom % 2 == 1 { cosine } else { 1.0 };
    // From one term to the next: 2/3, 4/5, ... or 1/2, 3/4, ...
    let start = if freedom % 2 == 1 { 2 } else { 1 };
    let mut term = first;
    let mut sum = if freedom > 1 { first } else { 0.0 };
    for step in (start..freedom.saturating_sub(2)).step_by(2) {
        term *= step as f64 / (step + 1) as f64 * cosine * cosine;
        sum += term;
    }
    match freedom % 2 {
        1 => 2.0 / PI * (angle + sine * sum),
        _ => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        let check = |freedom, level, expected: f64| {
            let found = critical(freedom, level);
            assert!(
                (found - expected).abs() < 0.001,
                "{freedom} {level}: {found}"
            );
        };
        check(1, 0.05, 12.706);
        check(2, 0.05, 4.303);
        check(3, 0.01, 5.841);
        check(8, 0.001, 5.041);
        check(18, 0.05, 2.101);
        check(18, 0.001, 3.922);
        check(120, 0.01, 2.617);
    }
}
