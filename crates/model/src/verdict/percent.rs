//! Shares as they are shown.

use super::Grade;

/// The share of whole stacks as it is shown: if it misses the limit of a grade, it does not round
/// up to that limit.
pub(super) fn whole_shown(share: f64) -> f64 {
    let rounded = (share * 1000.0).round() / 1000.0;
    let mut limits = [Grade::GOOD_WHOLE, Grade::FAIR_WHOLE].into_iter();
    match limits.any(|limit| share < limit && rounded >= limit) {
        true => rounded - 0.001,
        false => share,
    }
}

/// Like [`whole_shown`], for lost samples.
pub(super) fn lost_shown(share: f64) -> f64 {
    let rounded = (share * 1000.0).round() / 1000.0;
    let mut limits = [Grade::GOOD_LOST, Grade::FAIR_LOST].into_iter();
    match limits.any(|limit| share > limit && rounded <= limit) {
        true => rounded + 0.001,
        false => share,
    }
}

/// A share as a percentage that never rounds up to 100 or down to 0.
pub(super) fn percent(share: f64) -> String {
    let rounded = (share * 1000.0).round() / 10.0;
    let honest = if share < 1.0 && rounded >= 100.0 {
        99.9
    } else if share > 0.0 && rounded <= 0.0 {
        return "under 0.1 %".into();
    } else {
        rounded
    };
    if honest.fract() == 0.0 {
        format!("{honest:.0} %")
    } else {
        format!("{honest:.1} %")
    }
}
