//! Records of all CPUs in the order of time.
//!
//! Each ring is in order, but a pass over the rings reads one after the other. Records missing at
//! the end of a pass were written after that pass had read their ring, and so are younger than all
//! that the pass before had found:
//!
//! ```text
//!            pass 1            pass 2                 after pass 2, all up to 5 is in order:
//!   CPU 0    1  3              4  6  |                1 2 3 4 5 · 6 7 may wait for younger ones
//!   CPU 1    2     5           |  7                   (5 is the youngest of pass 1)
//! ```
//!
//! Passes may be half a second apart. So records slightly older than the start of a pass are in
//! order as well: the kernel takes the time and writes the record with interrupts off.

/// A record that waits in the sorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingRecord {
    /// Its time, in nanoseconds.
    pub(crate) time: u64,
    /// The index of its batch.
    pub(crate) batch: u64,
    /// Its index in the batch.
    pub(crate) index: usize,
}

/// Sorts records by time, pass by pass.
#[derive(Debug, Default)]
pub(crate) struct RecordSorter {
    waiting: Vec<PendingRecord>,
    /// The youngest record of the pass before the current one.
    ready: u64,
    /// The youngest record so far.
    youngest: u64,
}

impl RecordSorter {
    /// A virtual CPU may be delayed this long between the two, in nanoseconds.
    const WRITTEN_LATE: u64 = 20_000_000;

    /// A record of the current pass.
    pub(crate) fn push(&mut self, record: PendingRecord) {
        self.youngest = self.youngest.max(record.time);
        self.waiting.push(record);
    }

    /// Ends the pass that began at `begun`, and moves the records that are ready to `out`, in
    /// order.
    pub(crate) fn end_pass(&mut self, begun: u64, out: &mut Vec<PendingRecord>) {
        let written = begun.saturating_sub(Self::WRITTEN_LATE);
        self.take(self.ready.max(written), out);
        self.ready = self.youngest;
    }

    /// Moves all remaining records to `out`, in order.
    pub(crate) fn finish(&mut self, out: &mut Vec<PendingRecord>) {
        self.take(u64::MAX, out);
    }

    fn take(&mut self, until: u64, out: &mut Vec<PendingRecord>) {
        // By time, then in the order of arrival: records of a CPU with the same time keep their
        // order.
        self.waiting.sort_unstable();
        let ready = self.waiting.partition_point(|record| record.time <= until);
        out.extend(self.waiting.drain(..ready));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds passes of times, ring by ring; expects the output after each pass, and at the end.
    fn check(passes: &[&[u64]], expected: &[&[u64]]) {
        let mut order = RecordSorter::default();
        let mut got: Vec<Vec<u64>> = Vec::new();
        let mut out = Vec::new();
        for (batch, pass) in passes.iter().enumerate() {
            for (index, &time) in pass.iter().enumerate() {
                order.push(PendingRecord {
                    time,
                    batch: batch as u64,
                    index,
                });
            }
            order.end_pass(0, &mut out);
            got.push(out.drain(..).map(|record| record.time).collect());
        }
        order.finish(&mut out);
        got.push(out.drain(..).map(|record| record.time).collect());
        assert_eq!(got, expected);
    }

    #[test]
    fn passes_merge_in_order_of_time() {
        check(
            &[&[1, 3, 2, 5], &[4, 6, 7], &[]],
            &[&[], &[1, 2, 3, 4, 5], &[6, 7], &[]],
        );
    }

    #[test]
    fn a_quiet_pass_flushes_what_is_left() {
        check(&[&[3, 1], &[], &[]], &[&[], &[1, 3], &[], &[]]);
        check(&[&[2, 1]], &[&[], &[1, 2]]);
        check(&[], &[&[]]);
    }

    #[test]
    fn records_older_than_the_pass_do_not_wait() {
        let mut order = RecordSorter::default();
        let late = RecordSorter::WRITTEN_LATE;
        for (index, time) in [3, 1, 2].into_iter().enumerate() {
            order.push(PendingRecord {
                time,
                batch: 0,
                index,
            });
        }
        let mut out = Vec::new();
        order.end_pass(2 + late, &mut out);
        let times: Vec<u64> = out.iter().map(|record| record.time).collect();
        assert_eq!(times, [1, 2]);
    }

    #[test]
    fn latecomers_are_not_lost() {
        check(
            &[&[5], &[9], &[4, 10], &[]],
            &[&[], &[5], &[4, 9], &[10], &[]],
        );
    }

    /// Rings that are read one after the other while all of them are written to, as unevenly as
    /// possible: the output is in order, and few records wait.
    #[test]
    fn rings_that_interleave_badly_come_out_in_order() {
        const RINGS: usize = 7;
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut order, mut out) = (RecordSorter::default(), Vec::new());
            let mut rings: [Vec<u64>; RINGS] = Default::default();
            let (mut now, mut written, mut last, mut taken) = (0, 0, 0, 0);
            // Between two passes, some rings get records, some of them many.
            let mut write = |rings: &mut [Vec<u64>; RINGS]| {
                let number = random.usize(0..20);
                for _ in 0..number {
                    let ring = random.usize(0..RINGS) * random.usize(0..2);
                    now += random.u64(0..3);
                    rings[ring].push(now);
                }
                number
            };
            let mut passes = [0; 3];
            for batch in 0..200 {
                passes.rotate_left(1);
                passes[2] = 0;
                for ring in 0..RINGS {
                    written += write(&mut rings);
                    for (index, time) in rings[ring].drain(..).enumerate() {
                        let index = ring * 1_000_000 + index;
                        order.push(PendingRecord { time, batch, index });
                        passes[2] += 1;
                    }
                }
                order.end_pass(0, &mut out);
                // Waiting records are from the last two passes.
                assert!(order.waiting.len() <= passes[1] + passes[2], "seed {seed}");
                for waiting in out.drain(..) {
                    assert!(
                        waiting.time >= last,
                        "seed {seed}: {waiting:?} after {last}"
                    );
                    (last, taken) = (waiting.time, taken + 1);
                }
            }
            let left: usize = rings.iter().map(Vec::len).sum();
            order.finish(&mut out);
            assert!(out.is_sorted() && out.first().is_none_or(|first| first.time >= last));
            assert_eq!(taken + out.len() + left, written);
        }
    }

    #[test]
    fn records_of_the_same_time_stay_in_order() {
        let mut order = RecordSorter::default();
        for index in [0, 1, 2] {
            order.push(PendingRecord {
                time: 7,
                batch: 0,
                index,
            });
        }
        let mut out = Vec::new();
        order.finish(&mut out);
        let indices: Vec<usize> = out.iter().map(|record| record.index).collect();
        assert_eq!(indices, [0, 1, 2]);
    }
}
