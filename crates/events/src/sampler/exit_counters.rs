//! Events that report the counts of threads as they end.
//!
//! A READ record of a thread's event for one CPU goes to that CPU's ring from whichever CPU the
//! thread ends on (`inherit_stat`). The kernel writes to rings as if no other CPU wrote to them at
//! the same time, so that such records damage others. So they have separate rings and separate
//! events: a damaged ring costs a few counts, but no mapping and no sample.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use prof_model::Tid;
use rustix::io::Errno;

use crate::attr::setup::Setup;
use crate::kernel;
use crate::kernel::ring::Ring;
use crate::sampler::run_times::{Layout, RunTimes};

/// One CPU's events that report ends, and their ring.
#[derive(Debug, Default)]
pub(crate) struct ExitCounters {
    ring: Option<Ring>,
    /// Each with the id of its sampling event. The first one owns the ring.
    events: Vec<(OwnedFd, u64)>,
    /// The ids of the sampling events, by those of the exit counters.
    ids: HashMap<u64, u64>,
    /// A record under the id of the event that samples.
    record: Vec<u8>,
    /// What records have, if counts come from the switches.
    switches: Option<Layout>,
}

impl ExitCounters {
    /// Some hundred threads that end between two looks.
    const RING: u64 = 64 << 10;
    /// Where in a READ record the id is: header, pid, tid, value, id. The id also ends the record.
    /// Nothing else about records is needed here: perfdata parses them.
    const ID: usize = 24;

    /// Adds one for the event `id`, which samples this thread on this CPU. Its counts come from
    /// switches if `by_switches`.
    ///
    /// # Errors
    ///
    /// The ring cannot be mapped: ends are then not reported.
    pub(crate) fn add(
        &mut self,
        setup: &Setup,
        id: u64,
        (tid, cpu): (Tid, u32),
        by_switches: bool,
    ) -> Result<(), Errno> {
        let setup = Setup {
            wakeup_bytes: (Self::RING / 4) as u32,
            ..setup.clone()
        };
        let event = kernel::open_exit_counter(&setup, tid, cpu, by_switches)?;
        self.switches = by_switches.then_some(Layout {
            stream_id: setup.says_next_period(),
            lost: setup.features.lost_counts,
        });
        let own = kernel::id(event.as_fd())?;
        match self.events.first() {
            Some((first, _)) => kernel::redirect(event.as_fd(), first.as_fd())?,
            None => {
                let ring = Ring::map(event.as_fd(), Self::RING);
                let errno = |error: std::io::Error| Errno::from_io_error(&error);
                self.ring = Some(ring.map_err(|error| errno(error).unwrap_or(Errno::NOMEM))?);
            }
        }
        self.ids.insert(own, id);
        self.events.push((event, id));
        Ok(())
    }

    /// The descriptor to wait for: readable when a quarter of the ring is full.
    pub(crate) fn waiting(&self) -> Option<&OwnedFd> {
        self.events().next()
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &OwnedFd> {
        self.events.iter().map(|(event, _)| event)
    }

    /// The counts of the exit counters, by the ids of the sampling events: the READ records add up
    /// to these counts, while a sampling event counts slightly more at each switch.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let events = self.events.iter();
        events.filter_map(|(event, id)| Some((*id, kernel::count(event.as_fd())?)))
    }

    /// Hands out the records, each as if the event that samples had written it. Those from which
    /// `run_times` makes them go there, as of this ring.
    pub(crate) fn drain(
        &mut self,
        number: usize,
        run_times: &mut RunTimes,
        mut each: impl FnMut(&[u8]),
    ) {
        let Self {
            ring: Some(ring),
            ids,
            record,
            switches,
            ..
        } = self
        else {
            return;
        };
        ring.drain(|bytes| match *switches {
            Some(layout) => {
                // A damaged one belongs to nothing.
                let _ = run_times.take(number, bytes, layout);
            }
            None => {
                record.clear();
                record.extend_from_slice(bytes);
                if rename(record, ids) {
                    each(record);
                }
            }
        });
    }

    /// Changes a READ record to one that the event that samples might have written; `false` if it
    /// belongs to none.
    pub(crate) fn rename(&self, record: &mut [u8]) -> bool {
        rename(record, &self.ids)
    }
}

fn rename(record: &mut [u8], ids: &HashMap<u64, u64>) -> bool {
    let end = record.len().saturating_sub(size_of::<u64>());
    [ExitCounters::ID, end]
        .into_iter()
        .all(|at| rename_at(record, at, ids))
}

/// Replaces the id at this place; `false` if there is none that is known.
fn rename_at(record: &mut [u8], at: usize, ids: &HashMap<u64, u64>) -> bool {
    let Some(field) = record.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else {
        return false;
    };
    let Some(id) = ids.get(&u64::from_ne_bytes(*field)) else {
        return false;
    };
    *field = id.to_ne_bytes();
    true
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use rustix::thread::gettid;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;
    use crate::attr::setup::tests::setup;
    use crate::kernel::exit_reports::wait_until_gone;

    /// Works for 20 ms of CPU time; returns that, and the time that it took, in nanoseconds.
    fn work() -> (Tid, u64, u64) {
        let begin = Instant::now();
        loop {
            let used = clock_gettime(ClockId::ThreadCPUTime);
            let used = used.tv_sec.cast_unsigned() * 1_000_000_000 + used.tv_nsec as u64;
            if used > 20_000_000 {
                return (
                    gettid().as_raw_pid(),
                    used,
                    begin.elapsed().as_nanos() as u64,
                );
            }
        }
    }

    /// The threads of one that is counted, by switches: their times, and the counts of both.
    fn counted() -> Vec<((u64, u64), u64)> {
        let own = gettid().as_raw_pid();
        let mut cpus: Vec<ExitCounters> = Vec::new();
        for cpu in crate::system::online_cpus().unwrap() {
            let mut counters = ExitCounters::default();
            counters
                .add(&setup("cpu-clock:u"), 7, (own, cpu), true)
                .unwrap();
            counters
                .events()
                .for_each(|it| kernel::enable(it.as_fd()).unwrap());
            cpus.push(counters);
        }
        let mut threads = Vec::new();
        for _ in 0..3 {
            let (tid, used, took) = thread::spawn(work).join().unwrap();
            wait_until_gone(tid).unwrap();
            threads.push((tid, used, took));
        }
        let mut run_times = RunTimes::default();
        for (number, counters) in cpus.iter_mut().enumerate() {
            counters.drain(number, &mut run_times, |_| unreachable!("no READ"));
        }
        let mut counts: HashMap<Tid, u64> = HashMap::new();
        run_times.report(|number, record| {
            assert!(cpus[number].rename(record), "an unknown id");
            assert_eq!(record[24..32], 7_u64.to_ne_bytes());
            let tid = i32::from_ne_bytes(record[12..16].try_into().unwrap());
            let count = u64::from_ne_bytes(record[16..24].try_into().unwrap());
            *counts.entry(tid).or_default() += count;
        });
        let all = threads
            .iter()
            .map(|(tid, used, took)| ((*used, *took), counts[tid]));
        all.collect()
    }

    #[test]
    fn switches_say_how_long_threads_ran() {
        // In a thread of its own, whose events other tests do not see.
        let counted = thread::spawn(counted).join().unwrap();
        for ((used, took), count) in counted {
            assert!(
                count > used / 10 * 9 && count < took * 2,
                "{used} {took} {count}"
            );
        }
    }
}
