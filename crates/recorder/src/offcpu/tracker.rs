//! The waits of threads: from leaving a CPU to the return.
//!
//! ```text
//!   sample (context switch)     SWITCH out   or read while blocked     SWITCH in
//!   where: the stack            why: preempted?  where                 how long: its weight
//! ```
//!
//! If the kernel samples context switches, each wait has its stack. Otherwise the reader reads
//! blocked threads ([`BlockedThreadSampler`](crate::offcpu::blocked_threads)), which comes too late
//! for the shortest waits. Such a wait counts with the thread's next seen wait of about its length
//! (to a factor of two): all waits of one length have the same chance to be seen, wherever they
//! are, so those seen represent the others.
//!
//! While sampling is disabled, the clock of the waits stops: a wait during which that begins or
//! ends weighs only its sampled part.

use std::collections::{HashMap, HashSet};

use prof_model::{Pid, Tid, WaitCoverage};
use prof_perfdata::Attr;

use crate::stack_outcome::StackOutcome;

/// The waits of all threads.
#[derive(Debug, Default)]
pub(crate) struct OffCpuTracker {
    threads: HashMap<Tid, BlockedState>,
    /// Threads that have ended and whose ids are not in use again. If whole CPUs are sampled, these
    /// leave their CPUs once more.
    ended: HashSet<Tid>,
    seen: WaitCoverage,
    clock: Clock,
}

/// A clock that runs while waits are sampled.
#[derive(Debug, Default)]
struct Clock {
    /// When it was stopped; `None` if it runs.
    stopped: Option<u64>,
    /// For how many nanoseconds it was stopped before.
    stood: u64,
}

#[derive(Debug, Default)]
struct BlockedState {
    pid: Pid,
    /// When it left its CPU; `None` if it does not wait.
    since: Option<u64>,
    /// When it was preempted, by the clock of the waits; `None` if it is not ready to run.
    ready_since: Option<u64>,
    /// The start of sampling, by the clock of the waits.
    sampled_since: u64,
    /// The sample of its wait.
    sample: StoredSample,
    /// The same with what was read of the waiting thread later.
    later: StoredSample,
    /// Nanoseconds of earlier unseen waits, by the logarithm of their lengths.
    unseen: Vec<u64>,
}

/// The sample of a wait, if there is one.
#[derive(Debug, Default)]
struct StoredSample {
    /// The encoded sample. Kept to reuse its memory.
    record: Vec<u8>,
    /// Its event, and how its stack ended; `None` if there is no sample.
    of: Option<(usize, StackOutcome)>,
    /// When it was complete, if it is not the kernel's: wrong if the thread returned before.
    complete: u64,
}

/// A thread's remaining waiting time without a known stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnseenWait {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) length: u64,
}

/// A sample of a blocked thread, to be completed when the wait ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitSample<'a> {
    /// The index of its event.
    pub(crate) event: usize,
    /// The encoded sample.
    pub(crate) record: &'a [u8],
    /// Counted if the sample is written.
    pub(crate) outcome: StackOutcome,
}

/// A wait that has ended and has a stack.
#[derive(Debug)]
pub(crate) struct EndedWait<'a> {
    /// How the stack of its sample ended.
    pub(crate) outcome: StackOutcome,
    /// The encoded sample, and the index of its event.
    event: usize,
    record: &'a mut [u8],
    /// When it ended.
    time: u64,
    /// Its length, with that of the unseen waits that it represents.
    weight: u64,
}

impl<'a> EndedWait<'a> {
    /// Its completed sample. `attr` returns the attributes with which an event's samples are
    /// encoded.
    pub(crate) fn sample<'e>(self, attr: impl FnOnce(usize) -> Option<&'e Attr>) -> &'a [u8] {
        if let Some(attr) = attr(self.event) {
            attr.set_sample_time(self.record, self.time);
            attr.set_sample_period(self.record, self.weight);
        }
        self.record
    }
}

impl OffCpuTracker {
    /// Ended threads to remember before starting over: each leaves its CPU for the last time soon.
    const ENDED: usize = 4096;

    /// Sampling is enabled.
    pub(crate) fn enable(&mut self, time: u64) {
        self.clock.go_on(time);
    }

    /// Sampling is disabled.
    pub(crate) fn disable(&mut self, time: u64) {
        self.clock.stop(time);
    }

    /// A thread leaves its CPU, and this is the kernel's sample of that.
    pub(crate) fn leave(&mut self, tid: Tid, time: u64, sample: WaitSample<'_>) {
        let thread = self.threads.entry(tid).or_default();
        thread.begin(time, &self.clock);
        thread.sample.store(0, sample);
    }

    /// A thread has left its CPU and is blocked.
    pub(crate) fn out(&mut self, (pid, tid): (Pid, Tid), time: u64) {
        let thread = self.threads.entry(tid).or_default();
        thread.pid = pid;
        // The kernel's sample came just before.
        if thread.since.is_none() {
            thread.begin(time, &self.clock);
        }
    }

    /// Whether the thread's wait that began then has not ended yet.
    pub(crate) fn is_in_time(&self, tid: Tid, waited: u64) -> bool {
        let thread = self.threads.get(&tid);
        let waits = |thread: &BlockedState| thread.since.is_some_and(|since| since <= waited);
        thread.is_some_and(|thread| waits(thread) && thread.sample.of.is_none())
    }

    /// Stores the sample of a blocked thread, which is wrong if the thread returns before the time
    /// at which it was `complete`.
    pub(crate) fn see(&mut self, tid: Tid, complete: u64, sample: WaitSample<'_>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.sample.store(complete, sample);
        }
    }

    /// Stores what replaces the sample of a thread that still waits, unless the thread returns
    /// before this was `complete`.
    pub(crate) fn replace(&mut self, tid: Tid, complete: u64, sample: WaitSample<'_>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.later.store(complete, sample);
        }
    }

    /// The thread that has just left was preempted: it does not wait, but is ready to run.
    pub(crate) fn preempted(&mut self, tid: Tid, time: u64) {
        let thread = self.threads.entry(tid).or_default();
        thread.since = None;
        thread.ready_since = Some(self.clock.at(time));
    }

    /// Whether the thread has just left its CPU, and the kernel sampled that.
    pub(crate) fn has_left(&self, tid: Tid) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.since.is_some())
    }

    /// Whether the thread has ended. It does not wait when it leaves its CPU for the last time.
    pub(crate) fn has_ended(&self, tid: Tid) -> bool {
        // The kernel has taken its id away already.
        const NO_ID: Tid = -1;
        tid == NO_ID || self.ended.contains(&tid)
    }

    /// A thread with this id begins.
    pub(crate) fn start(&mut self, tid: Tid) {
        self.ended.remove(&tid);
    }

    /// The thread returns: its wait, if it has a stack.
    pub(crate) fn back(&mut self, tid: Tid, time: u64) -> Option<EndedWait<'_>> {
        let thread = self.threads.get_mut(&tid)?;
        thread.end(time, &self.clock, &mut self.seen)
    }

    /// The thread has ended; another one may get its id.
    pub(crate) fn forget(&mut self, tid: Tid) -> Option<UnseenWait> {
        if self.ended.len() >= Self::ENDED {
            self.ended.clear();
        }
        self.ended.insert(tid);
        let thread = self.threads.remove(&tid)?;
        thread.left(tid)
    }

    /// The samples of all that still wait at this time, and then the unseen waits.
    pub(crate) fn finish(
        &mut self,
        time: u64,
        mut each: impl FnMut(Result<EndedWait<'_>, UnseenWait>),
    ) {
        for (&tid, thread) in &mut self.threads {
            if let Some(wait) = thread.end(time, &self.clock, &mut self.seen) {
                each(Ok(wait));
            }
            if let Some(unseen) = thread.left(tid) {
                each(Err(unseen));
            }
        }
    }

    /// The number and time of waits with a stack since the last call.
    pub(crate) fn take_seen(&mut self) -> WaitCoverage {
        std::mem::take(&mut self.seen)
    }
}

impl Clock {
    fn stop(&mut self, time: u64) {
        self.stopped.get_or_insert(time);
    }

    fn go_on(&mut self, time: u64) {
        if let Some(stopped) = self.stopped.take() {
            self.stood += time.saturating_sub(stopped);
        }
    }

    /// Its value at a moment since it was last started or stopped.
    fn at(&self, time: u64) -> u64 {
        let time = self.stopped.map_or(time, |stopped| stopped.min(time));
        time.saturating_sub(self.stood)
    }
}

impl BlockedState {
    fn begin(&mut self, time: u64, clock: &Clock) {
        self.since = Some(time);
        self.sampled_since = clock.at(time);
        self.sample.of = None;
        self.later.of = None;
    }

    /// Ends a wait.
    fn end(&mut self, time: u64, clock: &Clock, seen: &mut WaitCoverage) -> Option<EndedWait<'_>> {
        if let Some(since) = self.ready_since.take() {
            seen.ready_time += clock.at(time).saturating_sub(since);
        }
        self.since.take()?;
        let length = clock.at(time).saturating_sub(self.sampled_since);
        if length == 0 {
            return None;
        }
        seen.waits += 1;
        seen.time += length;
        let alike = length.checked_ilog2().unwrap_or(0) as usize;
        let stored = match self.later.at(time) {
            Some(_) => &mut self.later,
            None => &mut self.sample,
        };
        let Some((event, outcome)) = stored.at(time) else {
            if self.unseen.len() <= alike {
                self.unseen.resize(alike + 1, 0);
            }
            *self.unseen.get_mut(alike)? += length;
            return None;
        };
        seen.seen += 1;
        seen.seen_time += length;
        let others = self.unseen.get_mut(alike).map_or(0, std::mem::take);
        seen.placed_time += others;
        let end = outcome.note.end;
        if end.counts() && !end.is_whole() {
            seen.partial_time += length + others;
        }
        Some(EndedWait {
            outcome,
            event,
            record: &mut stored.record,
            time,
            weight: length + others,
        })
    }

    fn left(&self, tid: Tid) -> Option<UnseenWait> {
        let length = self.unseen.iter().sum();
        (length > 0).then_some(UnseenWait {
            pid: self.pid,
            tid,
            length,
        })
    }
}

impl StoredSample {
    fn store(&mut self, complete: u64, sample: WaitSample<'_>) {
        self.of = Some((sample.event, sample.outcome));
        self.complete = complete;
        self.record.clear();
        self.record.extend_from_slice(sample.record);
    }

    /// Its event and how its stack ended, if it is that of a wait that ends then.
    fn at(&self, time: u64) -> Option<(usize, StackOutcome)> {
        self.of.filter(|_| time >= self.complete)
    }
}

#[cfg(test)]
mod tests {
    use prof_model::StackEnd;
    use prof_perfdata::{EventDescription, Record, RecordFormat, SampleType, encode};

    use super::*;

    const SAMPLE: WaitSample<'_> = WaitSample {
        event: 0,
        record: &[0; 64],
        outcome: StackOutcome::of(StackEnd::Root),
    };

    fn check(wait: Option<EndedWait<'_>>, expected: Option<(u64, u64)>) {
        let found = wait.map(|wait| (wait.time, wait.weight));
        assert_eq!(found, expected);
    }

    #[test]
    fn samples_of_waits_are_completed_when_these_end() {
        let attr = Attr {
            sample_type: SampleType::IDENTIFIER | SampleType::TIME | SampleType::PERIOD,
            ..Attr::default()
        };
        let mut record = Vec::new();
        encode::sample(&mut record, &attr, &encode::NewSample::default()).expect("a small sample");
        let mut waits = OffCpuTracker::default();
        let sample = WaitSample {
            event: 3,
            record: &record,
            ..SAMPLE
        };
        waits.leave(7, 1000, sample);
        let wait = waits.back(7, 3500).expect("a wait");
        let sample = wait.sample(|event| (event == 3).then_some(&attr));
        let event = EventDescription {
            attr: attr.clone(),
            ..EventDescription::default()
        };
        let format = RecordFormat::new(&[event]).expect("a format");
        let Ok(Record::Sample(sample)) = format.parse(sample) else {
            panic!("no sample");
        };
        assert_eq!((sample.time, sample.period), (Some(3500), 2500));
    }

    /// The result at the end: times and weights of samples, and the unseen time by thread.
    fn left(waits: &mut OffCpuTracker, time: u64) -> (usize, Vec<(Tid, u64)>) {
        let (mut samples, mut unseen) = (0, Vec::new());
        waits.finish(time, |left| match left {
            Ok(_) => samples += 1,
            Err(left) => unseen.push((left.tid, left.length)),
        });
        (samples, unseen)
    }

    #[test]
    fn waits_last_from_leaving_to_being_back() {
        let mut waits = OffCpuTracker::default();
        waits.leave(7, 1000, SAMPLE);
        waits.out((7, 7), 1001);
        waits.leave(8, 1500, SAMPLE);
        waits.leave(9, 1600, SAMPLE);
        waits.preempted(8, 1510);
        assert_eq!(waits.forget(9), None);
        check(waits.back(6, 2000), None);
        check(waits.back(8, 2000), None);
        check(waits.back(9, 2000), None);
        check(waits.back(7, 3500), Some((3500, 2500)));
        check(waits.back(7, 4000), None);
        waits.leave(8, 5000, SAMPLE);
        assert_eq!(left(&mut waits, 5010), (1, vec![]));
        let seen = waits.take_seen();
        assert_eq!((seen.waits, seen.seen, seen.time), (2, 2, 2510));
        assert_eq!(seen.ready_time, 2000 - 1510);
    }

    #[test]
    fn not_all_ended_threads_are_remembered() {
        let mut waits = OffCpuTracker::default();
        for tid in 1..100_000 {
            assert_eq!(waits.forget(tid), None);
            assert!(waits.has_ended(tid));
        }
        assert!(waits.ended.len() <= OffCpuTracker::ENDED);
    }

    #[test]
    fn threads_end_until_others_get_their_ids() {
        let mut waits = OffCpuTracker::default();
        waits.leave(7, 1000, SAMPLE);
        assert!(waits.has_left(7) && !waits.has_left(8) && !waits.has_ended(7));
        assert_eq!(waits.forget(7), None);
        assert!(waits.has_ended(7) && waits.has_ended(-1) && !waits.has_ended(8));
        waits.start(7);
        assert!(!waits.has_ended(7));
    }

    #[test]
    fn waits_without_a_whole_stack_are_counted_by_their_time() {
        let mut waits = OffCpuTracker::default();
        let ends = [
            StackEnd::Root,
            StackEnd::NoUnwindInfo,
            StackEnd::NoUserState,
        ];
        for (end, length) in ends.into_iter().zip([10, 2000, 300]) {
            let outcome = StackOutcome::of(end);
            waits.leave(7, 100, WaitSample { outcome, ..SAMPLE });
            check(waits.back(7, 100 + length), Some((100 + length, length)));
        }
        let seen = waits.take_seen();
        assert_eq!((seen.seen_time, seen.partial_time), (2310, 2000));
    }

    #[test]
    fn a_sample_that_was_complete_after_the_wait_is_none() {
        let mut waits = OffCpuTracker::default();
        for (complete, expected) in [(150, Some((200, 100))), (250, None)] {
            waits.out((7, 7), 100);
            waits.see(7, complete, SAMPLE);
            check(waits.back(7, 200), expected);
        }
    }

    #[test]
    fn what_was_read_later_replaces_a_sample_unless_the_wait_had_ended() {
        let mut waits = OffCpuTracker::default();
        for (complete, expected) in [(None, 1), (Some(150), 2), (Some(250), 1)] {
            let sample = |event| WaitSample { event, ..SAMPLE };
            waits.leave(7, 100, sample(1));
            if let Some(complete) = complete {
                waits.replace(7, complete, sample(2));
            }
            let wait = waits.back(7, 200).expect("a wait");
            assert_eq!((wait.event, wait.weight), (expected, 100), "{complete:?}");
        }
    }

    #[test]
    fn unsampled_parts_of_waits_do_not_count() {
        let mut waits = OffCpuTracker::default();
        waits.disable(1000);
        let mut wait = |from: u64, switch: &[(bool, u64)], to: u64, expected: Option<u64>| {
            waits.out((7, 7), from);
            for &(on, time) in switch {
                match on {
                    true => waits.enable(time),
                    false => waits.disable(time),
                }
            }
            assert!(waits.is_in_time(7, from));
            waits.see(7, 0, SAMPLE);
            check(waits.back(7, to), expected.map(|weight| (to, weight)));
        };
        wait(1100, &[], 1200, None);
        wait(1300, &[(true, 1350)], 1400, Some(50));
        wait(1500, &[], 1600, Some(100));
        wait(1700, &[(false, 1710)], 1800, Some(10));
        wait(
            1850,
            &[(true, 1900), (true, 1910), (false, 1930)],
            2000,
            Some(30),
        );
        wait(2100, &[(true, 2200)], 2300, Some(100));
        wait(
            2400,
            &[(false, 2401), (false, 2402), (true, 2500)],
            2600,
            Some(101),
        );
        waits.out((8, 8), 2700);
        waits.disable(2750);
        assert_eq!(left(&mut waits, 9000), (0, vec![(8, 50)]));
        let seen = waits.take_seen();
        assert_eq!((seen.waits, seen.seen, seen.time), (7, 6, 391 + 50));
    }

    #[test]
    fn a_look_counts_in_the_wait_it_was_meant_for() {
        let mut waits = OffCpuTracker::default();
        waits.out((7, 7), 1000);
        assert!(waits.is_in_time(7, 1000) && !waits.is_in_time(7, 900));
        waits.see(7, 0, SAMPLE);
        assert!(!waits.is_in_time(7, 1000), "it has been seen");
        check(waits.back(7, 1500), Some((1500, 500)));
        assert!(!waits.is_in_time(7, 1000));
        waits.out((7, 7), 2000);
        assert!(!waits.is_in_time(7, 1000) && waits.is_in_time(7, 2000));
    }

    #[test]
    fn waits_that_were_seen_stand_for_others_of_their_length() {
        let mut waits = OffCpuTracker::default();
        let mut wait = |from: u64, to: u64, seen: bool, expected: Option<(u64, u64)>| {
            waits.out((7, 7), from);
            if seen {
                waits.see(7, 0, SAMPLE);
            }
            check(waits.back(7, to), expected);
        };
        wait(0, 100, false, None);
        wait(200, 310, false, None);
        wait(400, 100_400, false, None);
        wait(200_000, 200_127, true, Some((200_127, 127 + 210)));
        wait(300_000, 300_100, true, Some((300_100, 100)));
        assert_eq!(left(&mut waits, 400_000), (0, vec![(7, 100_000)]));
        let seen = waits.take_seen();
        assert_eq!((seen.waits, seen.seen), (5, 2));
        assert_eq!((seen.seen_time, seen.placed_time), (227, 210));
        assert_eq!(seen.time, 227 + 210 + 100_000);
    }
}
