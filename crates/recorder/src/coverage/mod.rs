//! The work of each thread, and how much of it has samples.
//!
//! ```text
//!   FORK ── samples: what each stands for ── EXIT: its names ── READs: what it counted, by CPU
//!                                                                └─ added up by names
//! ```

mod by_name;
mod earlier_names;
pub(crate) mod probes;
mod samples;
mod thread_name;
mod unreported;

use std::collections::{BTreeMap, HashMap, VecDeque};

use prof_events::{Opened, SamplePeriod};
use prof_model::{Coverage, Pid, Processes, Tid, Unsampled};
use prof_perfdata::{Record, Sample, Stamp, Throttle};

use by_name::{Counted, CoverageByName, undersampled_period, unsampled};
use earlier_names::EarlierNames;
use samples::Samples;
use thread_name::ThreadName;

/// Adds up the work of threads, and weighs their samples.
#[derive(Debug, Default)]
pub(crate) struct CoverageTracker {
    /// How periods vary, if they do.
    sample_period: Option<SamplePeriod>,
    /// The usual period, if the event counts in the kernel and in user code, but samples in one of
    /// them only. Only clocks do.
    undersampled_period: Option<u64>,
    /// The threads that the events were opened on, by the events' ids.
    owners: HashMap<u64, Tid>,
    /// Whether the events are not inherited.
    excludes_children: bool,
    threads: HashMap<Tid, TrackedThread>,
    /// Threads that have ended, the latest last: their READ records come afterwards.
    ended: VecDeque<Tid>,
    /// The counts that READ records reported, by event.
    reported: HashMap<u64, u64>,
    /// By the name of threads and, if they executed a program, the name before.
    names: BTreeMap<(ThreadName, Option<ThreadName>), CoverageByName>,
    /// The name of the covered event, if there are several.
    event: Option<String>,
    /// The code that it counts and does not sample.
    unsampled: Option<Unsampled>,
}

/// A thread that lives, or has just ended.
#[derive(Debug, Default)]
struct TrackedThread {
    pid: Pid,
    /// Its name, once it has ended.
    name: Option<ThreadName>,
    events: Vec<Counted>,
    /// Since it executed its program.
    samples: Samples,
    earlier: EarlierNames,
}

impl CoverageTracker {
    /// The most ended threads that wait for their READ records, which follow at once.
    const WAITING: usize = 4096;
    /// The most names; further threads share one.
    const NAMES: usize = 1000;

    /// `event`: the name of the covered event, if there are several.
    pub(crate) fn new(opened: &Opened, event: Option<String>) -> Self {
        Self {
            event,
            unsampled: unsampled(opened),
            sample_period: opened.sample_period(),
            excludes_children: opened.excludes_children(),
            undersampled_period: undersampled_period(opened),
            owners: opened
                .reported_event()
                .map(|event| event.ids.iter().copied().collect())
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The name of the covered event, and the code that it counts and does not sample.
    pub(crate) fn subject(&self) -> (Option<String>, Option<Unsampled>) {
        (self.event.clone(), self.unsampled.clone())
    }

    /// Adds a sample of this period and returns its weight.
    pub(crate) fn sample(&mut self, sample: &Sample<'_>, period: u64) -> u64 {
        match sample.id {
            Some(id) if self.owners.contains_key(&id) => {
                self.weigh((sample.pid, sample.tid), id, period)
            }
            _ => period,
        }
    }

    /// Handles a record of another kind, before `processes` does.
    pub(crate) fn follow(&mut self, record: &Record<'_>, processes: &Processes) {
        if self.owners.is_empty() {
            return;
        }
        match record {
            Record::Fork(task) => self.begin(task.tid, processes),
            Record::Comm(comm) if comm.exec => self.exec(comm.pid, processes),
            Record::Throttle(throttle) => self.throttle(throttle, Counted::stop),
            Record::Unthrottle(throttle) => self.throttle(throttle, Counted::go_on),
            Record::Exit(task) => self.end((task.pid, task.tid), processes),
            Record::Read(read) => {
                for value in read.values.iter() {
                    self.counted((read.pid, read.tid), value.id.unwrap_or(0), value.value);
                }
            }
            _ => {}
        }
    }

    fn weigh(&mut self, (pid, tid): (Pid, Tid), id: u64, period: u64) -> u64 {
        let thread = self.threads.entry(tid).or_default();
        thread.pid = pid;
        let counted = thread.counted(id);
        if counted.age == 0 {
            counted.period = period;
        }
        counted.age = counted.age.saturating_add(period);
        let weight = match self.sample_period {
            Some(sample_period) if period != sample_period.period => {
                sample_period.weight(period, counted.age)
            }
            _ => period,
        };
        thread.samples.add(period, weight);
        weight
    }

    /// A thread starts: an earlier one with its id is gone.
    fn begin(&mut self, tid: Tid, processes: &Processes) {
        if let Some(mut thread) = self.threads.remove(&tid) {
            for counted in &mut thread.events {
                counted.assume(|id, used| {
                    let sum = self.reported.entry(id).or_default();
                    *sum = sum.saturating_add(used);
                });
            }
            self.add(tid, thread, processes);
        }
    }

    /// A process executes another program. If a thread other than the main one asked for it, the
    /// main one has ended, and the thread goes on under its id.
    fn exec(&mut self, pid: Pid, processes: &Processes) {
        let goes_on = |(tid, thread): &(&Tid, &TrackedThread)| {
            thread.pid == pid && **tid != pid && thread.name.is_none()
        };
        let other = self.threads.iter().find(goes_on).map(|(&tid, _)| tid);
        let thread = other.and_then(|tid| self.threads.remove(&tid));
        let main = self.threads.get(&pid).and_then(|main| main.name.clone());
        let name = ThreadName::of(pid, other.unwrap_or(pid), processes);
        let name = match &main {
            Some(main) => name.in_process_of(main),
            None => name,
        };
        if main.is_some() || thread.is_some() {
            self.begin(pid, processes);
        }
        let thread = thread.or_else(|| self.threads.remove(&pid));
        let mut thread = thread.unwrap_or_default();
        thread.pid = pid;
        thread
            .earlier
            .add(name, std::mem::take(&mut thread.samples));
        self.threads.insert(pid, thread);
    }

    /// A thread ends. Its name is still known.
    fn end(&mut self, (pid, tid): (Pid, Tid), processes: &Processes) {
        let thread = self.threads.entry(tid).or_default();
        thread.pid = pid;
        thread.name = Some(ThreadName::of(pid, tid, processes));
        self.ended.push_back(tid);
        if self.ended.len() > Self::WAITING
            && let Some(oldest) = self.ended.pop_front()
            && let Some(thread) = self.threads.get(&oldest)
            && thread.name.is_some()
        {
            self.begin(oldest, processes);
        }
    }

    /// The kernel throttled sampling of a thread, or resumed it.
    fn throttle(&mut self, throttle: &Throttle, then: impl FnOnce(&mut Counted, u64)) {
        let Stamp { pid, tid, .. } = throttle.stamp;
        if let (Some(pid), Some(tid)) = (pid, tid)
            && self.owners.contains_key(&throttle.id)
        {
            let thread = self.threads.entry(tid).or_default();
            thread.pid = pid;
            then(thread.counted(throttle.id), throttle.time);
        }
    }

    /// A thread that has ended had this count of this event.
    fn counted(&mut self, (pid, tid): (Pid, Tid), id: u64, count: u64) {
        let sum = self.reported.entry(id).or_default();
        *sum = sum.saturating_add(count);
        let thread = self.threads.entry(tid).or_default();
        thread.pid = pid;
        let counted = thread.counted(id);
        counted.used = counted.used.saturating_add(count);
        counted.reported = true;
    }

    /// The coverage by names, the greatest first. `counts` has the total of each event over all
    /// threads that inherited it: the part that no READ record reported belongs to threads that
    /// still live. `lost` is the share of lost samples.
    pub(crate) fn finish(
        mut self,
        counts: &[(u64, u64)],
        lost: f64,
        processes: &Processes,
    ) -> Vec<Coverage> {
        let living = living(processes);
        for &(id, count) in counts {
            let rest = count.saturating_sub(self.reported.get(&id).copied().unwrap_or(0));
            // The counts of the sampling event and of the exit counter differ slightly.
            if self.owners.contains_key(&id) && rest > count / 100 {
                self.divide(id, rest, &living);
            }
        }
        for (tid, thread) in std::mem::take(&mut self.threads) {
            self.add(tid, thread, processes);
        }
        let mut by_name: BTreeMap<ThreadName, Coverage> = BTreeMap::new();
        for ((name, _), named) in self.names {
            for (name, part) in named.coverage(name, lost) {
                let name = bounded(name, &by_name).unwrap_or_else(ThreadName::others);
                by_name.entry(name).or_default().append(&part);
            }
        }
        let named = by_name.into_iter();
        let mut all: Vec<Coverage> = named.map(|(name, it)| name.with(it)).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.used));
        all
    }

    fn add(&mut self, tid: Tid, thread: TrackedThread, processes: &Processes) {
        let samples = thread.samples.number + thread.earlier.samples().number;
        if samples == 0 && thread.events.iter().all(|counted| counted.used == 0) {
            return;
        }
        let name = (thread.name).unwrap_or_else(|| ThreadName::of(thread.pid, tid, processes));
        let earlier = thread.earlier.last().filter(|earlier| **earlier != name);
        let (name, earlier) = bounded((name.clone(), earlier.cloned()), &self.names)
            .unwrap_or((ThreadName::others(), None));
        let named = self.names.entry((name.clone(), earlier)).or_default();
        named.add_thread(&name, thread.samples, thread.earlier);
        named.add_counts(&thread.events, self.undersampled_period);
    }
}

impl TrackedThread {
    fn counted(&mut self, id: u64) -> &mut Counted {
        let known = self.events.iter().position(|counted| counted.id == id);
        let index = known.unwrap_or_else(|| {
            self.events.push(Counted {
                id,
                ..Counted::default()
            });
            self.events.len() - 1
        });
        &mut self.events[index]
    }
}

/// The key, unless the map is full without it.
fn bounded<K: Ord, V>(key: K, map: &BTreeMap<K, V>) -> Option<K> {
    (map.len() < CoverageTracker::NAMES || map.contains_key(&key)).then_some(key)
}

/// All living threads, each with its process.
fn living(processes: &Processes) -> BTreeMap<Tid, Pid> {
    let threads = processes
        .iter()
        .flat_map(|(pid, process)| process.threads().map(move |tid| (tid, pid)));
    threads.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetimes(owners: &[(u64, Tid)]) -> CoverageTracker {
        CoverageTracker {
            owners: owners.iter().copied().collect(),
            ..CoverageTracker::default()
        }
    }

    #[test]
    fn counts_of_threads_are_added_up_by_name() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "main");
        let mut tracker = lifetimes(&[(7, 1), (8, 1)]);
        for tid in [2, 3] {
            processes.fork((1, 1), (1, tid));
            processes.rename(1, tid, "worker");
            assert_eq!(tracker.weigh((1, tid), 7, 100), 100);
            tracker.end((1, tid), &processes);
            processes.exit(1, tid);
            tracker.counted((1, tid), 7, 150);
            tracker.counted((1, tid), 8, 50);
        }
        tracker.weigh((1, 1), 7, 100);
        // The first thread still lives: of 7, 450 are counted and 300 reported; of 8, 100 are
        // reported.
        let all = tracker.finish(&[(7, 450), (8, 100)], 0.0, &processes);
        let coverage = |thread: &str, threads, used, sampled, samples| Coverage {
            process: "main".into(),
            thread: thread.into(),
            threads,
            used,
            sampled,
            periods: sampled,
            samples,
            ..Coverage::default()
        };
        assert_eq!(
            all,
            [
                coverage("worker", 2, 400, 200, 2),
                coverage("main", 1, 150, 100, 1)
            ]
        );
    }

    #[test]
    fn a_thread_that_executes_a_program_becomes_the_main_one() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "before");
        processes.fork((1, 1), (1, 2));
        let mut tracker = lifetimes(&[(7, 1)]);
        tracker.weigh((1, 1), 7, 200);
        tracker.weigh((1, 2), 7, 300);
        tracker.end((1, 1), &processes);
        processes.exit(1, 1);
        tracker.counted((1, 1), 7, 200);
        tracker.exec(1, &processes);
        processes.rename(1, 1, "after");
        tracker.weigh((1, 1), 7, 1000);
        tracker.end((1, 1), &processes);
        tracker.counted((1, 1), 7, 1300);
        let all = tracker.finish(&[(7, 1500)], 0.0, &processes);
        let found = all.iter().map(|one| (&*one.process, one.used, one.sampled));
        let expected = [("after", 1000, 1000), ("before", 500, 500)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// `lived`: the sampled work of each thread. `reported`: the threads with a READ record, and
    /// its count.
    fn check_rest(
        owner: Tid,
        lived: &[(Tid, u64, bool)],
        reported: &[(Tid, u64)],
        count: u64,
        expected: &[(&str, u64, u64)],
    ) {
        let mut processes = Processes::default();
        let mut tracker = lifetimes(&[(7, owner), (8, 40)]);
        processes.rename(40, 40, "apart");
        for &(tid, age, ends) in lived {
            processes.rename(tid, tid, format!("t{tid}").as_str());
            if age > 0 {
                tracker.weigh((tid, tid), 7, age);
            }
            if ends {
                tracker.end((tid, tid), &processes);
                processes.exit(tid, tid);
            }
        }
        for &(tid, used) in reported {
            tracker.counted((tid, tid), 7, used);
        }
        let all = tracker.finish(&[(7, count)], 0.0, &processes);
        let mut found: Vec<_> = (all.iter())
            .map(|one| (one.process.as_str(), one.used, one.estimated))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn unreported_counts_belong_to_threads_without_reports() {
        // The events were opened on a thread that ends while it is recorded.
        check_rest(2, &[(2, 100, true)], &[], 105, &[("t2", 105, 0)]);
        check_rest(2, &[(2, 0, true)], &[], 105, &[("t2", 105, 105)]);
        // A command ends, and one of its records is lost.
        let command = [(2, 100, true), (3, 300, true)];
        check_rest(
            1,
            &command,
            &[(2, 101)],
            406,
            &[("t2", 101, 0), ("t3", 305, 0)],
        );
        // Two still live, and only their sum is known.
        let both = [(2, 100, false), (3, 300, false)];
        let expected = [("t2", 200, 200), ("t3", 600, 600)];
        check_rest(1, &both, &[], 800, &expected);
        // The same for a thread without samples.
        let both = [(2, 100, false), (3, 0, false)];
        check_rest(1, &both, &[], 110, &[("t2", 110, 110)]);
        // No other thread inherits from the one that has its own.
        check_rest(2, &[(2, 100, false)], &[], 110, &[("t2", 110, 0)]);
        check_rest(2, &[(2, 0, false)], &[], 110, &[("t2", 110, 0)]);
    }

    #[test]
    fn counts_of_uninherited_events_belong_to_the_first_thread() {
        for (samples, ends) in [(0, true), (0, false), (1, true), (1, false)] {
            let mut processes = Processes::default();
            processes.rename(5, 5, "first");
            let mut tracker = CoverageTracker {
                excludes_children: true,
                ..lifetimes(&[(7, 5)])
            };
            for _ in 0..samples {
                tracker.weigh((5, 5), 7, 100);
            }
            if ends {
                tracker.end((5, 5), &processes);
                processes.exit(5, 5);
            }
            processes.rename(6, 6, "child");
            let all = tracker.finish(&[(7, 450)], 0.0, &processes);
            let reported: Vec<_> = (all.iter())
                .map(|one| (one.process.as_str(), one.used, one.estimated))
                .collect();
            assert_eq!(reported, [("first", 450, 0)], "{samples} {ends}");
        }
    }

    #[test]
    fn threads_without_samples_are_known() {
        let mut processes = Processes::default();
        processes.rename(5, 5, "idle");
        let tracker = lifetimes(&[(7, 5)]);
        let all = tracker.finish(&[(7, 450)], 0.0, &processes);
        assert_eq!((all[0].process.as_str(), all[0].used), ("idle", 450));
        assert_eq!(all[0].samples, 0);
    }

    /// The work of each thread, by its names; `rest` is the unreported part.
    fn check_names(owner: Tid, rest: u64, of_ended: &[(Pid, Tid)], expected: &[(&str, &str, u64)]) {
        let mut processes = Processes::default();
        processes.rename(5, 5, "server");
        processes.fork((5, 5), (5, 6));
        processes.rename(5, 6, "worker");
        let mut tracker = lifetimes(&[(7, owner)]);
        for &thread in of_ended {
            tracker.counted(thread, 7, 100);
        }
        let all = tracker.finish(&[(7, 100 * of_ended.len() as u64 + rest)], 0.0, &processes);
        let reported = |one: &Coverage| (one.process.clone(), one.thread.clone(), one.used);
        let mut reported: Vec<_> = all.iter().map(reported).collect();
        reported.sort();
        let expected = expected
            .iter()
            .map(|&(process, thread, used)| (process.into(), thread.into(), used));
        assert_eq!(reported, expected.collect::<Vec<(String, String, u64)>>());
    }

    #[test]
    fn all_threads_have_names() {
        // A thread of a running process, and one of a command that continues.
        check_names(6, 50, &[], &[("server", "worker", 50)]);
        check_names(
            1,
            51,
            &[],
            &[("server", "server", 25), ("server", "worker", 26)],
        );
        // Only their counts were reported.
        check_names(
            1,
            0,
            &[(5, 8), (9, 9)],
            &[(":9", ":9", 100), ("server", "server", 100)],
        );
    }

    #[test]
    fn counts_without_a_thread_are_reported() {
        let all = lifetimes(&[(7, 1)]).finish(&[(7, 50)], 0.0, &Processes::default());
        assert_eq!((all[0].process.as_str(), all[0].used), ("others", 50));
    }

    #[test]
    fn a_reused_id_is_another_thread() {
        let processes = Processes::default();
        let mut tracker = lifetimes(&[(7, 1)]);
        tracker.end((1, 2), &processes);
        tracker.counted((1, 2), 7, 10);
        tracker.begin(2, &processes);
        tracker.counted((1, 2), 7, 20);
        let all = tracker.finish(&[], 0.0, &processes);
        assert_eq!((all[0].threads, all[0].used), (2, 30));
    }

    #[test]
    fn counts_of_ended_threads_are_estimated_from_their_samples() {
        let mut processes = Processes::default();
        processes.rename(3, 3, "last");
        let mut tracker = lifetimes(&[(7, 1)]);
        tracker.weigh((2, 2), 7, 100);
        tracker.begin(2, &processes);
        tracker.weigh((3, 3), 7, 50);
        let all = tracker.finish(&[(7, 160)], 0.0, &processes);
        let reported = |one: &Coverage| (one.process.clone(), one.used, one.estimated);
        let reported: Vec<_> = all.iter().map(reported).collect();
        assert_eq!(reported, [(":2".into(), 100, 100), ("last".into(), 60, 0)]);
    }
}
