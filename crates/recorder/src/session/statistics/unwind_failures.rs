//! Where unwinding stopped, counted.

use std::collections::HashMap;

use prof_model::{Modules, Quality, UnwindFailure};

use crate::stack_outcome::UnwindStop;

/// Counts places, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct UnwindFailures {
    counts: HashMap<UnwindStop, u64>,
}

impl UnwindFailures {
    /// The most distinct places; later ones count only in the total by reason.
    const PLACES: usize = 8 * Quality::MAX_FAILURES;

    pub(crate) fn count(&mut self, place: UnwindStop) {
        if self.counts.len() < Self::PLACES || self.counts.contains_key(&place) {
            *self.counts.entry(place).or_default() += 1;
        }
    }

    /// The most frequent ones, first ones first.
    pub(crate) fn most_frequent(&self, modules: &Modules) -> Vec<UnwindFailure> {
        let mut failures: Vec<UnwindFailure> = self
            .counts
            .iter()
            .map(|(place, &count)| UnwindFailure {
                end: place.end,
                module: place
                    .module
                    .map(|id| modules[id].path.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                offset: place.offset,
                count,
            })
            .collect();
        failures.sort_by(|a, b| {
            (b.count.cmp(&a.count)).then_with(|| (&a.module, a.offset).cmp(&(&b.module, b.offset)))
        });
        failures.truncate(Quality::MAX_FAILURES);
        failures
    }
}

#[cfg(test)]
mod tests {
    use prof_model::StackEnd;

    use super::*;

    #[test]
    fn the_most_frequent_come_first_and_their_number_is_bounded() {
        let mut failures = UnwindFailures::default();
        let place = |offset| UnwindStop {
            end: StackEnd::NotCode,
            module: None,
            offset,
        };
        for offset in 0..20_000 {
            failures.count(place(offset));
        }
        failures.count(place(7));
        let most = failures.most_frequent(&Modules::default());
        assert_eq!(most.len(), Quality::MAX_FAILURES);
        assert_eq!(
            most.first().map(|failure| (failure.offset, failure.count)),
            Some((7, 2))
        );
    }
}
