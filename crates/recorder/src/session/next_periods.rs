//! Periods of samples that say the next one.
//!
//! The kernel chooses a new period at each sample of an event of its own, such as page faults at a
//! frequency. It reports the period that begins with the sample, which may be many times as long
//! as the one that ends:
//!
//! ```text
//!   sample       1        2        3                    4
//!   events    ───┴────────┴────────┴────────────────────┴──────
//!   reported     1        20       400                  350
//!   stands for   1        1        20                   400
//! ```

use std::collections::HashMap;

/// The periods that have begun, of one event.
#[derive(Debug, Default)]
pub(crate) struct NextPeriods {
    /// By the number of the thread's event: the kernel swaps the events of threads.
    begun: HashMap<u64, u64>,
}

impl NextPeriods {
    /// The most events to remember, most of them of threads that have ended; then it starts over.
    const REMEMBERED: usize = 1 << 16;

    /// How many events a sample stands for that says the period `next`. The first one of a thread
    /// says its own.
    pub(crate) fn ended(&mut self, stream_id: Option<u64>, next: u64) -> u64 {
        let Some(stream_id) = stream_id else {
            return next;
        };
        if self.begun.len() >= Self::REMEMBERED {
            self.begun.clear();
        }
        self.begun.insert(stream_id, next).unwrap_or(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_the_period_that_ends_with_it() {
        let mut periods = NextPeriods::default();
        let mut check = |stream_id, next, expected| {
            let ended = periods.ended(stream_id, next);
            assert_eq!(ended, expected, "{stream_id:?} {next}");
        };
        check(Some(7), 1, 1);
        check(Some(7), 20, 1);
        check(Some(8), 300, 300);
        check(Some(7), 400, 20);
        check(Some(8), 9, 300);
        check(None, 9, 9);
    }
}
