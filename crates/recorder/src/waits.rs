//! Threads that wait: samples that were taken when a thread left its CPU, until it is back.
//!
//! ```text
//!   sample (context switch)     SWITCH out          ...          SWITCH in
//!   where: the stack            why: preempted?                  how long: its weight
//! ```

use std::collections::HashMap;

use prof_model::Tid;

/// The samples of threads that have left their CPUs, as records.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    threads: HashMap<Tid, Wait>,
}

#[derive(Debug, Default)]
struct Wait {
    /// When the thread left.
    since: u64,
    /// Its sample; empty if it is not waiting. Kept for its memory.
    record: Vec<u8>,
}

/// Where the time and the weight are in a sample that this crate writes (see `layout`).
const TIME: usize = 32;
const PERIOD: usize = 48;

impl Waits {
    /// A thread leaves its CPU, and this is its sample.
    pub(crate) fn leave(&mut self, tid: Tid, time: u64, record: &[u8]) {
        let wait = self.threads.entry(tid).or_default();
        wait.since = time;
        wait.record.clear();
        wait.record.extend_from_slice(record);
    }

    /// The thread that has just left did not want to: it does not wait, another one has its CPU.
    pub(crate) fn preempted(&mut self, tid: Tid) {
        if let Some(wait) = self.threads.get_mut(&tid) {
            wait.record.clear();
        }
    }

    /// The thread is back: its sample, if it waited, which is now from the end of the wait and
    /// weighs its length in nanoseconds.
    pub(crate) fn back(&mut self, tid: Tid, time: u64) -> Option<&mut Vec<u8>> {
        let wait = self.threads.get_mut(&tid)?;
        wait.end(time).then_some(&mut wait.record)
    }

    /// The thread has ended; another one may get its number.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.threads.remove(&tid);
    }

    /// The samples of all that still wait at this time.
    pub(crate) fn finish(&mut self, time: u64) -> impl Iterator<Item = &[u8]> {
        let threads = self.threads.values_mut();
        threads.filter_map(move |wait| wait.end(time).then_some(wait.record.as_slice()))
    }
}

impl Wait {
    /// Completes the sample; `false` if there is none.
    fn end(&mut self, time: u64) -> bool {
        let waited = time.saturating_sub(self.since);
        let mut put = |offset: usize, value: u64| {
            let field = self.record.get_mut(offset..offset + 8);
            field.is_some_and(|field| {
                field.copy_from_slice(&value.to_ne_bytes());
                true
            })
        };
        put(TIME, time) && put(PERIOD, waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: Option<&[u8]>, expected: Option<(u64, u64)>) {
        let word = |record: &[u8], at: usize| {
            u64::from_ne_bytes(record[at..at + 8].try_into().expect("eight bytes"))
        };
        let found = record.map(|record| (word(record, TIME), word(record, PERIOD)));
        assert_eq!(found, expected);
    }

    #[test]
    fn waits_last_from_leaving_to_being_back() {
        let mut waits = Waits::default();
        waits.leave(7, 1000, &[0; 64]);
        waits.leave(8, 1500, &[0; 64]);
        waits.leave(9, 1600, &[0; 64]);
        waits.preempted(8);
        waits.forget(9);
        check(waits.back(6, 2000).map(|r| r.as_slice()), None);
        check(waits.back(8, 2000).map(|r| r.as_slice()), None);
        check(waits.back(9, 2000).map(|r| r.as_slice()), None);
        let record = waits.back(7, 3500).expect("it waited");
        check(Some(record.as_slice()), Some((3500, 2500)));
        record.clear();
        check(waits.back(7, 4000).map(|r| r.as_slice()), None);
        waits.leave(8, 5000, &[0; 64]);
        let left: Vec<_> = waits.finish(5010).map(<[u8]>::to_vec).collect();
        assert_eq!(left.len(), 1);
        check(left.first().map(Vec::as_slice), Some((5010, 10)));
    }
}
