//! How far a measured share may be from the true one.

use crate::stacks::Stacks;

/// How many standard deviations a measurement may be off: less than once in 100,000 honest runs.
const SIGMAS: f64 = 4.5;

/// How exactly the programs' fixed work keeps its proportions: caches, interrupts and the
/// work around it blur them by this much.
const BLUR: f64 = 0.005;

/// Asserts that functions have these shares of self time, as precisely as `samples` independent
/// samples allow: a share `p` of `n` samples has the standard deviation sqrt(p (1 - p) / n).
///
/// # Panics
/// If one of them has not.
#[track_caller]
pub fn assert_shares(stacks: &Stacks, samples: u64, expected: &[(&str, f64)]) {
    for &(function, share) in expected {
        let measured = stacks.self_share(function);
        let bound = bound(share, samples);
        assert!(
            (measured - share).abs() <= bound,
            "{function} has {measured:.4} of {samples} samples, not {share} ± {bound:.4}:\n{stacks}"
        );
    }
}

fn bound(share: f64, samples: u64) -> f64 {
    SIGMAS * (share * (1.0 - share) / samples as f64).sqrt() + BLUR
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn the_bound_shrinks_with_the_root_of_the_number_of_samples() {
        assert!((bound(0.5, 10_000) - 0.0275).abs() < 1e-9);
        assert!((bound(0.5, 1_000_000) - 0.00725).abs() < 1e-9);
    }
}
