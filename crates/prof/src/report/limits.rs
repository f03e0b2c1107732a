//! `--fail-above`: what became of the limits of a comparison.

use std::process::ExitCode;

use prof_console::Console;
use prof_report::{CallTree, Error};

use crate::exit;
use crate::flags::GrowthLimit;

/// Whether something grew beyond a limit, and which limits apply to nothing.
#[derive(Default)]
pub(crate) struct CheckedLimits {
    grew: bool,
    /// Limits for functions that no stack has: typing errors must not look like passed checks.
    unmatched: Vec<Unmatched>,
}

struct Unmatched {
    /// As the user writes it.
    limit: String,
    error: Error,
}

impl CheckedLimits {
    /// What became of `limits`, of which one or more were exceeded if something `grew`.
    pub(crate) fn new(grew: bool, limits: &[GrowthLimit], trees: &[&CallTree<'_>]) -> Self {
        let unmatched = limits.iter().filter_map(|limit| {
            let pattern = limit.function.as_ref()?;
            let error = CallTree::check_pattern(trees, pattern).err()?;
            Some(Unmatched {
                limit: format!("{}:{pattern}", limit.points),
                error,
            })
        });
        Self {
            grew,
            unmatched: unmatched.collect(),
        }
    }

    /// What became of the same limits in both of two comparisons: a function may be in one only.
    pub(crate) fn and(self, other: Self) -> Self {
        let is_in_other = |one: &Unmatched| other.unmatched.iter().any(|it| it.limit == one.limit);
        Self {
            grew: self.grew || other.grew,
            unmatched: (self.unmatched.into_iter()).filter(is_in_other).collect(),
        }
    }

    /// The exit status; names the limits that apply to nothing.
    pub(crate) fn conclude(self) -> ExitCode {
        let failed = !self.unmatched.is_empty();
        for Unmatched { limit, error } in self.unmatched {
            Console::error(&anyhow::Error::new(error).context(format!("--fail-above {limit}")));
        }
        match (self.grew, failed) {
            (true, _) => exit::CHECK_FAILED.into(),
            (false, true) => ExitCode::FAILURE,
            (false, false) => ExitCode::SUCCESS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(grew: bool, unmatched: &[&str]) -> CheckedLimits {
        let unmatched = unmatched.iter().map(|&limit| Unmatched {
            limit: limit.to_owned(),
            error: Error::NoSuchFunction {
                pattern: limit.to_owned(),
                similar: Vec::new(),
            },
        });
        CheckedLimits {
            grew,
            unmatched: unmatched.collect(),
        }
    }

    #[test]
    fn a_limit_that_applies_to_nothing_fails_a_check() {
        let check = |checked: CheckedLimits, expected: ExitCode| {
            assert_eq!(checked.conclude(), expected);
        };
        check(checked(false, &[]), ExitCode::SUCCESS);
        check(checked(true, &[]), exit::CHECK_FAILED.into());
        check(checked(false, &["5:wrok"]), ExitCode::FAILURE);
        check(checked(true, &["5:wrok"]), exit::CHECK_FAILED.into());
    }

    #[test]
    fn a_limit_may_apply_to_one_of_two_comparisons() {
        let check = |one: &[&str], other: &[&str], expected: &[&str]| {
            let both = checked(false, one).and(checked(false, other));
            let limits: Vec<_> = both.unmatched.iter().map(|it| &*it.limit).collect();
            assert_eq!(limits, expected, "{one:?} {other:?}");
        };
        check(&["5:a"], &["5:b"], &[]);
        check(&["5:a", "5:c"], &["5:c"], &["5:c"]);
        assert!(checked(true, &[]).and(checked(false, &[])).grew);
    }
}
