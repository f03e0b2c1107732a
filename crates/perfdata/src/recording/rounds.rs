//! Puts records in time order, holding as few as possible.

use super::chunks::RecordPosition;

/// Records that wait for their turn.
///
/// Each ring's records are in order, but rings are drained one after the other. A round is one pass
/// over all rings. Records written after a ring was drained in one round come in the next, so
/// nothing in round 3 can be older than the newest record of round 1:
///
/// ```text
///   time ──────────────────────────────────────────────────>
///   round 1   |·················|
///   round 2          |··············|
///   round 3                     |··············|
///                               └─ when round 2 ends, all up to here is complete
/// ```
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Not sorted yet.
    waiting: Vec<Waiting>,
    /// Sorted, handed out up to `next`.
    ready: Vec<Waiting>,
    next: usize,
    /// Newest time of all rounds up to the last.
    previous_newest: u64,
    /// Newest time so far.
    newest: u64,
    /// Records in this round so far.
    in_round: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: u64,
    place: RecordPosition,
}

impl Rounds {
    /// A longer round is cut in two, which keeps the bookkeeping under 100 MiB and harms the order
    /// only if the round is three times as long.
    const MOST_IN_ROUND: usize = 1 << 21;

    pub(super) fn push(&mut self, time: u64, place: RecordPosition) {
        self.newest = self.newest.max(time);
        self.waiting.push(Waiting { time, place });
        self.in_round += 1;
        if self.in_round >= Self::MOST_IN_ROUND {
            self.finish_round();
        }
    }

    /// A round is complete: the records of the one before are ready.
    pub(super) fn finish_round(&mut self) {
        self.flush(self.previous_newest);
        self.previous_newest = self.newest;
        self.in_round = 0;
    }

    /// No more records come: all are ready.
    pub(super) fn finish(&mut self) {
        self.flush(u64::MAX);
    }

    /// The next record in order.
    pub(super) fn pop(&mut self) -> Option<RecordPosition> {
        let waiting = self.ready.get(self.next)?;
        self.next += 1;
        Some(waiting.place)
    }

    fn flush(&mut self, up_to: u64) {
        // Stable, so that records of one time keep the file's order; and fast, because the sort
        // uses the sorted runs of the rings.
        self.waiting.sort_by_key(|waiting| waiting.time);
        let count = self
            .waiting
            .partition_point(|waiting| waiting.time <= up_to);
        self.ready.drain(..self.next);
        self.next = 0;
        self.ready.extend(self.waiting.drain(..count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes each round's times and returns the output after each, and at the end.
    fn check(rounds: &[&[u64]], expected: &[&[u64]]) {
        let mut order = Rounds::default();
        let mut pushed = Vec::new();
        let mut out = Vec::new();
        let mut drain = |order: &mut Rounds, pushed: &[u64]| {
            out.push(
                std::iter::from_fn(|| order.pop())
                    .map(|p| pushed[p.offset])
                    .collect(),
            );
        };
        for round in rounds {
            for &time in *round {
                order.push(time, RecordPosition::in_file(pushed.len()));
                pushed.push(time);
            }
            order.finish_round();
            drain(&mut order, &pushed);
        }
        order.finish();
        drain(&mut order, &pushed);
        let out: Vec<Vec<u64>> = out;
        assert_eq!(out, expected);
    }

    #[test]
    fn a_round_is_handed_out_when_the_next_is_complete() {
        check(&[], &[&[]]);
        check(&[&[2, 1]], &[&[], &[1, 2]]);
        check(
            &[&[1, 5, 2], &[3, 7, 6], &[8, 6]],
            &[&[], &[1, 2, 3, 5], &[6, 6, 7], &[8]],
        );
        check(&[&[1], &[], &[2]], &[&[], &[1], &[], &[2]]);
    }

    #[test]
    fn records_that_come_too_late_follow_at_once() {
        check(
            &[&[4], &[6], &[2, 7], &[8]],
            &[&[], &[4], &[2, 6], &[7], &[8]],
        );
    }

    #[test]
    fn records_of_one_time_stay_in_the_files_order() {
        let mut order = Rounds::default();
        for offset in 0..100 {
            order.push(7, RecordPosition::in_file(offset));
        }
        order.finish();
        let out: Vec<_> = std::iter::from_fn(|| order.pop())
            .map(|p| p.offset)
            .collect();
        assert_eq!(out, (0..100).collect::<Vec<_>>());
    }
}
