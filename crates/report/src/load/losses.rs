//! Losses that records report.

use prof_perfdata::Lost;

use super::events::Traits;

/// How many samples were lost, as different records say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedLosses {
    /// Records that found a ring full: LOST records count them when there is room again.
    records: u64,
    /// Samples that the CPU dropped before they reached a ring.
    dropped: u64,
    /// The samples among the `records`, if perf has written these totals. It does at the end of a
    /// recording, one for each event that lost any, where the kernel counts them (Linux 6.0).
    totals: Option<u64>,
}

impl ReportedLosses {
    pub(super) fn add_records(&mut self, lost: &Lost) {
        self.records = self.records.saturating_add(lost.count);
    }

    /// Takes a LOST_SAMPLES record of an event with these traits.
    pub(super) fn add_samples(&mut self, lost: &Lost, traits: Traits) {
        // The kernel's records have a time.
        let is_total = traits.counts_losses && lost.stamp.time.is_none();
        let sum = match is_total {
            true => self.totals.get_or_insert(0),
            false => &mut self.dropped,
        };
        if !(is_total && traits.is_dummy) {
            *sum = sum.saturating_add(lost.count);
        }
    }

    pub(super) fn sum(self) -> u64 {
        let at_rings = self.totals.unwrap_or(self.records);
        at_rings.saturating_add(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use prof_perfdata::Stamp;

    use super::*;

    const SAMPLED: Traits = Traits {
        chains: true,
        open_calls: false,
        counts_losses: true,
        is_dummy: false,
    };
    const DUMMY: Traits = Traits {
        is_dummy: true,
        ..SAMPLED
    };
    const OLD: Traits = Traits {
        counts_losses: false,
        ..SAMPLED
    };

    fn lost(count: u64, time: Option<u64>) -> Lost {
        let stamp = Stamp {
            time,
            ..Stamp::default()
        };
        Lost { stamp, count }
    }

    /// Of LOST records with these counts, and LOST_SAMPLES records with these counts, times and
    /// events.
    fn check(records: &[u64], samples: &[(u64, Option<u64>, Traits)], expected: u64) {
        let mut losses = ReportedLosses::default();
        for &count in records {
            losses.add_records(&lost(count, Some(1)));
        }
        for &(count, time, traits) in samples {
            losses.add_samples(&lost(count, time), traits);
        }
        assert_eq!(losses.sum(), expected, "{records:?} {samples:?}");
    }

    #[test]
    fn totals_at_the_end_are_of_the_same_losses() {
        check(&[46, 34], &[(80, None, SAMPLED)], 80);
        check(&[46, 34], &[(50, None, SAMPLED), (20, None, SAMPLED)], 70);
        check(&[46, 34], &[(50, None, SAMPLED), (30, None, DUMMY)], 50);
        check(&[46, 34], &[(80, None, DUMMY)], 0);
        check(&[46, 34], &[], 80);
    }

    #[test]
    fn samples_that_the_cpu_dropped_are_others() {
        check(&[46], &[(7, Some(1), SAMPLED)], 53);
        check(&[46], &[(7, Some(1), SAMPLED), (46, None, SAMPLED)], 53);
        check(&[46], &[(7, Some(1), OLD), (3, None, OLD)], 56);
    }
}
