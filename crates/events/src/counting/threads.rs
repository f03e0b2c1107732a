//! Counting every thread of a command separately, including short-lived ones.
//!
//! Reading an event that threads inherit returns one sum. But as a thread ends, the kernel can
//! write its count into the event's ring (`inherit_stat`):
//!
//! ```text
//!   first thread ──────────────── ends             read(event) = sum of all
//!     └─ thread ─── ends: READ tid, count          one thread  = sum - all READs
//!     └─ thread ──────── ends: READ tid, count
//! ```
//!
//! Two things prevent this:
//!
//! - Between threads whose events are copies of each other's, the kernel prefers to swap counts
//!   rather than events, and mixes them up if the events are of several kinds. It does not do so
//!   while one of the events is sampled together with its group (Linux 6.12); a dummy event is.
//! - If it still swaps, the events that we opened may end with any thread, which then has no READ.
//!
//! Some kernels (6.1 and 6.12 are known) write no READ as a thread ends: then the threads cannot be
//! told apart.
//!
//! A ring needs an event for each CPU, so there is one for each, and a thread's counts on all CPUs
//! are added up. Each is enabled all the time, on whichever CPU the thread runs. No permission is
//! needed beyond that for counting one's own processes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use perf_event_open_sys::bindings as sys;
use prof_model::{Pid, Tid};
use rustix::io::Errno;

use super::attr::{AttrOptions, Inherit, attr};
use super::raw::{Place, RawCount, RawCounter};
use super::thread_record::Record;
use crate::kernel;
use crate::kernel::ring::Ring;
use crate::parsing::EventSpec;

/// Counts every thread of a command separately, from its `exec` on.
#[derive(Debug)]
pub struct ThreadCounters {
    first: Tid,
    events: usize,
    cpus: Vec<OnCpu>,
    threads: BTreeMap<Tid, ThreadCount>,
    lost: u64,
}

/// The counts of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCount {
    /// Its process.
    pub pid: Pid,
    /// The thread that created it; 0 for the first one.
    pub parent: Tid,
    /// Its name at its end; empty if it kept its parent's.
    pub name: String,
    /// Its count of each event, in the given order.
    pub counts: Vec<RawCount>,
    /// Whether it has ended.
    ended: bool,
}

/// The counts of a command's threads.
#[derive(Debug)]
pub struct ThreadCounts {
    /// By thread; only the first one, with the sum of all, if they are not told apart.
    pub threads: BTreeMap<Tid, ThreadCount>,
    /// How many of the kernel's records were lost, whose counts went to the first thread.
    pub lost: u64,
    /// Whether the kernel has reported the counts of the threads that ended.
    pub told_apart: bool,
}

/// Why the threads of a command cannot be counted.
#[derive(Debug)]
pub enum ThreadCountersError {
    /// The kernel refuses the event of this index.
    Event(usize, Errno),
    /// The kernel is too old to distinguish threads for events of several kinds.
    Mixed,
    /// A ring buffer cannot be mapped.
    Ring(io::Error),
}

#[derive(Debug)]
struct OnCpu {
    ring: Ring,
    events: Vec<RawCounter>,
    _guard: Option<RawCounter>,
}

/// Large enough for the counts of a few hundred threads that end between two readings, and small
/// enough for a plain user's limit on locked memory.
const RING: u64 = 256 << 10;

impl ThreadCounters {
    /// Opens the events on a command that has not called `exec` yet.
    ///
    /// # Errors
    ///
    /// The kernel refuses an event or a ring.
    pub fn open(
        events: &[EventSpec],
        command: Pid,
        cpus: &[u32],
    ) -> Result<Self, ThreadCountersError> {
        let mut counters = Self {
            first: command,
            events: events.len(),
            cpus: Vec::with_capacity(cpus.len()),
            threads: BTreeMap::new(),
            lost: 0,
        };
        for cpu in cpus {
            counters.cpus.extend(OnCpu::open(events, command, *cpu)?);
        }
        Ok(counters)
    }

    /// Reads the counts of threads that have ended. Call it at intervals, so that the rings do not
    /// overflow.
    pub fn drain(&mut self) {
        let Self {
            events,
            cpus,
            threads,
            lost,
            ..
        } = self;
        for on_cpu in cpus {
            let ids: Vec<u64> = on_cpu.events.iter().map(RawCounter::id).collect();
            on_cpu.ring.drain(|record| match Record::parse(record) {
                Some(Record::Read {
                    pid,
                    tid,
                    id,
                    count,
                }) => {
                    let thread = threads.entry(tid).or_default();
                    thread.pid = pid;
                    thread.counts.resize(*events, RawCount::default());
                    let index = ids.iter().position(|known| *known == id);
                    if let Some(sum) = index.and_then(|index| thread.counts.get_mut(index)) {
                        *sum = plus(*sum, count);
                    }
                }
                Some(Record::Comm { pid, tid, name }) => {
                    let thread = threads.entry(tid).or_default();
                    (thread.pid, thread.name) = (pid, name);
                }
                Some(Record::Fork { pid, tid, parent }) => {
                    let thread = threads.entry(tid).or_default();
                    (thread.pid, thread.parent) = (pid, parent);
                }
                Some(Record::Exit { pid, tid }) => {
                    let thread = threads.entry(tid).or_default();
                    (thread.pid, thread.ended) = (pid, true);
                }
                Some(Record::Lost(count)) => *lost += count,
                None => {}
            });
        }
    }

    /// The counts of each thread of the command, which has ended.
    ///
    /// # Errors
    ///
    /// An event cannot be read.
    pub fn finish(mut self) -> Result<ThreadCounts, Errno> {
        self.drain();
        let mut rest = vec![RawCount::default(); self.events];
        for on_cpu in &self.cpus {
            for (event, sum) in on_cpu.events.iter().zip(&mut rest) {
                *sum = plus(*sum, event.read()?.unwrap_or_default());
            }
        }
        for thread in self.threads.values() {
            for (count, sum) in thread.counts.iter().zip(&mut rest) {
                *sum = minus(*sum, *count);
            }
        }
        let told_apart = self.lost > 0 || self.silent().filter(|(_, it)| it.ended).count() < 2;
        let owner = self.owner_of_the_rest();
        let entry = self.threads.entry(owner).or_default();
        entry.counts.resize(self.events, RawCount::default());
        for (sum, count) in entry.counts.iter_mut().zip(rest) {
            *sum = plus(*sum, count);
        }
        self.threads.retain(|_, thread| !thread.counts.is_empty());
        // On each CPU the events were enabled all the time.
        let cpus = self.cpus.len().max(1) as u64;
        for count in self
            .threads
            .values_mut()
            .flat_map(|thread| &mut thread.counts)
        {
            count.enabled = (count.enabled / cpus).max(count.running);
        }
        Ok(ThreadCounts {
            threads: self.threads,
            lost: self.lost,
            told_apart,
        })
    }

    /// The threads without READ.
    fn silent(&self) -> impl Iterator<Item = (&Tid, &ThreadCount)> {
        let threads = self.threads.iter();
        threads.filter(|(_, thread)| thread.counts.is_empty())
    }

    /// The thread that ended with the events that we opened: the only one without READ. If there
    /// are more, because some still live, it is unknown, and the first one gets the rest.
    fn owner_of_the_rest(&self) -> Tid {
        let mut silent = self.silent();
        match (silent.next(), silent.next()) {
            (Some((tid, _)), None) => *tid,
            _ => self.first,
        }
    }
}

impl OnCpu {
    /// `None` if the CPU went offline since we looked.
    fn open(
        specs: &[EventSpec],
        command: Pid,
        cpu: u32,
    ) -> Result<Option<Self>, ThreadCountersError> {
        let guard = match Self::guard(command, cpu) {
            // An old kernel swaps counts, which is right as long as they are of one kind.
            Err(Errno::INVAL) if is_of_one_kind(specs) => None,
            Err(Errno::INVAL) => return Err(ThreadCountersError::Mixed),
            Err(Errno::NODEV) => return Ok(None),
            guard => Some(guard.map_err(|errno| ThreadCountersError::Event(0, errno))?),
        };
        let mut ring = None;
        let mut events: Vec<RawCounter> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let refused = |errno| ThreadCountersError::Event(index, errno);
            let mut attr = attr(spec, OPTIONS);
            attr.set_inherit_stat(1);
            report_threads(&mut attr, index == 0);
            let event =
                match RawCounter::open_attr(attr, spec, Place::ThreadOnCpu(command, cpu), None) {
                    Ok(event) => event,
                    Err(Errno::NODEV) => return Ok(None),
                    Err(errno) => return Err(refused(errno)),
                };
            match events.first() {
                None => {
                    ring = Some(Ring::map(event.as_fd(), RING).map_err(ThreadCountersError::Ring)?)
                }
                Some(first) => kernel::redirect(event.as_fd(), first.as_fd()).map_err(refused)?,
            }
            events.push(event);
        }
        Ok(ring.map(|ring| Self {
            ring,
            events,
            _guard: guard,
        }))
    }

    /// Keeps the kernel from swapping counts.
    fn guard(command: Pid, cpu: u32) -> Result<RawCounter, Errno> {
        let spec = EventSpec::dummy();
        let mut attr = attr(&spec, OPTIONS);
        attr.sample_type = u64::from(sys::PERF_SAMPLE_READ | sys::PERF_SAMPLE_TID);
        RawCounter::open_attr(attr, &spec, Place::ThreadOnCpu(command, cpu), None)
    }
}

const OPTIONS: AttrOptions = AttrOptions {
    inherit: Inherit::Children,
    enable_on_exec: true,
    group_read: false,
    enabled: false,
};

fn report_threads(attr: &mut sys::perf_event_attr, on: bool) {
    attr.set_comm(on.into());
    attr.set_task(on.into());
}

/// Whether one PMU of the kernel counts them all: then a thread's events are in the same order as
/// those that it copied.
fn is_of_one_kind(specs: &[EventSpec]) -> bool {
    let kind = |spec: &EventSpec| {
        (
            spec.encoding.kind,
            spec.is_clock().then_some(spec.encoding.config),
        )
    };
    specs
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if kind(a) == kind(b)))
}

fn plus(a: RawCount, b: RawCount) -> RawCount {
    RawCount {
        value: a.value.saturating_add(b.value),
        enabled: a.enabled.saturating_add(b.enabled),
        running: a.running.saturating_add(b.running),
    }
}

fn minus(a: RawCount, b: RawCount) -> RawCount {
    RawCount {
        value: a.value.saturating_sub(b.value),
        enabled: a.enabled.saturating_sub(b.enabled),
        running: a.running.saturating_sub(b.running),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeldCommand;
    use crate::Program;
    use crate::Signals;
    use crate::parsing::Catalog;

    fn specs(text: &str) -> Vec<EventSpec> {
        let groups = Catalog::system().parse(text).unwrap();
        groups.into_iter().flat_map(|group| group.events).collect()
    }

    fn count(script: &str, events: &str) -> Vec<(String, Vec<RawCount>)> {
        let signals = Signals::block().unwrap();
        let held = HeldCommand::fork(&Program::new(["sh", "-c", script]), &signals).unwrap();
        let cpus = crate::system::System::read().unwrap().cpus;
        let mut counters = ThreadCounters::open(&specs(events), held.pid(), &cpus).unwrap();
        held.release().unwrap().wait().unwrap();
        counters.drain();
        let counted = counters.finish().unwrap();
        assert_eq!((counted.lost, counted.told_apart), (0, true));
        let threads = counted.threads.into_values();
        threads.map(|thread| (thread.name, thread.counts)).collect()
    }

    #[test]
    fn each_process_of_a_script_has_its_counts() {
        let threads = count(
            "ls / >/dev/null; ls / >/dev/null; true",
            "page-faults:u,task-clock:u",
        );
        let names: Vec<&str> = threads.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sh", "ls", "ls"]);
        for (_, counts) in &threads {
            assert!(counts[0].value > 20 && counts[1].value > 0, "{threads:?}");
            assert!(counts[1].running > 0);
        }
        let (first, second) = (threads[1].1[0].value, threads[2].1[0].value);
        assert!(first.abs_diff(second) < first / 4, "{first} {second}");
    }

    #[test]
    fn kernels_that_report_no_counts_are_noticed() {
        let told_apart = |threads: &[(bool, usize)]| {
            let thread = |&(ended, counts)| ThreadCount {
                ended,
                counts: vec![RawCount::default(); counts],
                ..ThreadCount::default()
            };
            let counters = ThreadCounters {
                first: 1,
                events: 1,
                cpus: Vec::new(),
                threads: (1..).zip(threads.iter().map(thread)).collect(),
                lost: 0,
            };
            counters.finish().unwrap().told_apart
        };
        assert!(told_apart(&[(true, 0), (true, 1), (true, 1)]));
        assert!(told_apart(&[(false, 0), (false, 0), (true, 0)]), "daemons");
        assert!(!told_apart(&[(true, 0), (true, 0), (false, 0)]));
    }

    #[test]
    fn kinds_are_not_mixed_up() {
        // The clocks and the faults are of three kinds; a mix-up turns faults into nanoseconds.
        let script = "for i in 1 2 3 4 5 6; do ls / >/dev/null & done; wait";
        let threads = count(
            script,
            "page-faults:u,task-clock:u,minor-faults:u,cpu-clock:u",
        );
        assert_eq!(threads.len(), 7);
        for (_, counts) in &threads {
            assert!(
                counts[0].value < 2_000 && counts[0].value >= counts[2].value,
                "{threads:?}"
            );
            assert!(counts[1].value > 50_000, "{threads:?}");
            assert!(
                counts.iter().all(|count| count.running == count.enabled),
                "{threads:?}"
            );
        }
    }
}
