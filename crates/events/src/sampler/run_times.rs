//! How long each thread ran, from its switches.
//!
//! Some kernels (Debian's 6.1 and 6.12 are known) write no READ record as a thread ends. For
//! clocks, what it would say can be computed: the event counts while the thread is on a CPU.
//!
//! ```text
//!   FORK      SWITCH in ─── SWITCH out     SWITCH in ─── EXIT
//!              - t1          + t2           - t3         + t4   = the count of its READ
//! ```
//!
//! The records are on the rings of the CPUs where the thread ran, in no common order; so times are
//! added up in any order, and count if none is missing. As with READ, each CPU has its own count.

use std::collections::HashMap;

use perf_event_open_sys::bindings as sys;
use prof_model::Tid;

/// The times of the threads that run.
#[derive(Debug, Default)]
pub(crate) struct RunTimes {
    threads: HashMap<Tid, RunningThread>,
    /// Records were lost at this time: a thread older than that may lack some.
    lost: u64,
    latest: u64,
    /// Threads that ended since the last look.
    ended: Vec<Tid>,
}

#[derive(Debug, Default)]
struct RunningThread {
    pid: u32,
    /// When it began, in nanoseconds.
    forked: Option<u64>,
    /// Its times on each CPU, where an event of its own counts it.
    cpus: Vec<RunTime>,
}

#[derive(Debug)]
struct RunTime {
    /// The index of the CPU's ring.
    ring: usize,
    layout: Layout,
    /// The ends of its times there minus the beginnings, modulo 2^64.
    sum: u64,
    /// Beginnings minus ends.
    open: i64,
    /// The bytes after the body of its last record.
    sample_id: Vec<u8>,
}

impl RunTimes {
    /// More threads at a time are not followed.
    const MOST: usize = 65_536;
    const HEADER: usize = 8;
    /// pid, ppid, tid, ptid, time (PERF_RECORD_FORK and EXIT).
    const FORK: usize = 24;

    /// Takes a record of this ring of exit counters; `None` if it is damaged.
    pub(super) fn take(&mut self, ring: usize, record: &[u8], layout: Layout) -> Option<()> {
        const SWITCH_OUT: u16 = 1 << 13;
        let header: &[u8; Self::HEADER] = record.first_chunk()?;
        let [k0, k1, k2, k3, m0, m1, ..] = *header;
        let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        match u32::from_ne_bytes([k0, k1, k2, k3]) {
            sys::PERF_RECORD_SWITCH => {
                let (tid, time) = layout.thread_and_time(record)?;
                let out = u16::from_ne_bytes([m0, m1]) & SWITCH_OUT != 0;
                self.latest = self.latest.max(time);
                self.thread(tid)?
                    .on(ring, layout)
                    .add(time, out, record.get(Self::HEADER..)?);
            }
            kind @ (sys::PERF_RECORD_FORK | sys::PERF_RECORD_EXIT) => {
                let (pid, tid) = (word(Self::HEADER)?, word(Self::HEADER + 8)?.cast_signed());
                let time = record.get(Self::HEADER + 16..)?.first_chunk()?;
                let time = u64::from_ne_bytes(*time);
                let thread = self.thread(tid)?;
                thread.pid = pid;
                if kind == sys::PERF_RECORD_FORK {
                    thread.forked = Some(time);
                } else {
                    let sample_id = record.get(Self::HEADER + Self::FORK..)?;
                    thread.on(ring, layout).add(time, true, sample_id);
                    self.ended.push(tid);
                }
            }
            sys::PERF_RECORD_LOST => self.lost = self.latest,
            _ => {}
        }
        Some(())
    }

    fn thread(&mut self, tid: Tid) -> Option<&mut RunningThread> {
        if self.threads.len() >= Self::MOST && !self.threads.contains_key(&tid) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    /// Passes on the READ records of each thread that has ended and whose times are known, one for
    /// each CPU, with the index of its ring.
    pub(super) fn report(&mut self, mut each: impl FnMut(usize, &mut [u8])) {
        for tid in std::mem::take(&mut self.ended) {
            let thread = self.threads.remove(&tid).unwrap_or_default();
            let is_whole = thread.forked.is_some_and(|forked| forked > self.lost)
                && thread.cpus.iter().all(|time| time.open == 0);
            for time in thread.cpus.iter().filter(|_| is_whole) {
                if let Some(mut record) = time.read_record(thread.pid, tid) {
                    each(time.ring, &mut record);
                }
            }
        }
    }
}

impl RunningThread {
    fn on(&mut self, ring: usize, layout: Layout) -> &mut RunTime {
        let known = self.cpus.iter().position(|time| time.ring == ring);
        let index = known.unwrap_or_else(|| {
            self.cpus.push(RunTime {
                ring,
                layout,
                sum: 0,
                open: 0,
                sample_id: Vec::new(),
            });
            self.cpus.len() - 1
        });
        &mut self.cpus[index]
    }
}

impl RunTime {
    fn add(&mut self, time: u64, is_end: bool, sample_id: &[u8]) {
        (self.sum, self.open) = match is_end {
            true => (self.sum.wrapping_add(time), self.open - 1),
            false => (self.sum.wrapping_sub(time), self.open + 1),
        };
        self.sample_id.clear();
        self.sample_id.extend_from_slice(sample_id);
    }

    /// pid, tid, { count, id, lost }, and what ends each record.
    fn read_record(&self, pid: u32, tid: Tid) -> Option<Vec<u8>> {
        let id = self.sample_id.last_chunk::<8>()?;
        let lost = if self.layout.lost { 8 } else { 0 };
        let length = RunTimes::HEADER + 24 + lost + self.sample_id.len();
        let mut record = Vec::with_capacity(length);
        record.extend(sys::PERF_RECORD_READ.to_ne_bytes());
        record.extend(0_u16.to_ne_bytes());
        record.extend(u16::try_from(length).ok()?.to_ne_bytes());
        record.extend(pid.to_ne_bytes());
        record.extend(tid.to_ne_bytes());
        record.extend(self.sum.to_ne_bytes());
        record.extend(id);
        record.resize(record.len() + lost, 0);
        record.extend(&self.sample_id);
        Some(record)
    }
}

/// What the records of exit counters have besides their usual fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether the id of the thread's own event is between the time and the CPU
    /// (PERF_SAMPLE_STREAM_ID).
    pub(crate) stream_id: bool,
    /// Whether READ records have a number of lost samples (PERF_FORMAT_LOST).
    pub(crate) lost: bool,
}

impl Layout {
    /// From the record's end: { pid, tid }, time, stream_id, { cpu, res }, identifier.
    fn thread_and_time(self, record: &[u8]) -> Option<(Tid, u64)> {
        let after = if self.stream_id { 32 } else { 24 };
        let time_at = record.len().checked_sub(after)?;
        let time = u64::from_ne_bytes(*record.get(time_at..)?.first_chunk()?);
        let tid = u32::from_ne_bytes(*record.get(time_at.checked_sub(4)?..)?.first_chunk()?);
        Some((tid.cast_signed(), time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout {
        stream_id: false,
        lost: true,
    };

    fn record(kind: u32, misc: u16, body: &[u32], tid: Tid, time: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(misc.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(
            [7_u32, tid.cast_unsigned()]
                .into_iter()
                .flat_map(u32::to_ne_bytes),
        );
        bytes.extend([time, 1, 42].into_iter().flat_map(u64::to_ne_bytes));
        bytes
    }

    fn switch(out: bool, tid: Tid, time: u64) -> Vec<u8> {
        record(
            sys::PERF_RECORD_SWITCH,
            u16::from(out) << 13,
            &[],
            tid,
            time,
        )
    }

    fn task(kind: u32, tid: Tid, time: u64) -> Vec<u8> {
        let [low, high] = [time as u32, (time >> 32) as u32];
        let body = [7, 7, tid.cast_unsigned(), 7, low, high];
        record(kind, 0, &body, tid, time)
    }

    /// The ring, thread and count of each READ record.
    fn reported(times: &mut RunTimes) -> Vec<(usize, Tid, u64)> {
        let mut found = Vec::new();
        times.report(|ring, record| {
            assert_eq!(record.len(), 8 + 32 + 32);
            assert_eq!(record[24..32], 42_u64.to_ne_bytes(), "the id");
            let tid = i32::from_ne_bytes(record[12..16].try_into().unwrap());
            let count = u64::from_ne_bytes(record[16..24].try_into().unwrap());
            found.push((ring, tid, count));
        });
        found
    }

    const FORK: u32 = sys::PERF_RECORD_FORK;
    const EXIT: u32 = sys::PERF_RECORD_EXIT;

    #[test]
    fn times_add_up_for_each_cpu_in_any_order() {
        let mut times = RunTimes::default();
        for (ring, record) in [
            // The ring of the CPU on which it ended comes before that on which it began.
            (0, switch(false, 9, 300)),
            (0, task(EXIT, 9, 350)),
            (1, task(FORK, 9, 90)),
            (1, switch(false, 9, 100)),
            (1, switch(true, 9, 130)),
        ] {
            times.take(ring, &record, LAYOUT).unwrap();
        }
        assert_eq!(reported(&mut times), [(0, 9, 50), (1, 9, 30)]);
        assert!(times.threads.is_empty());
    }

    #[test]
    fn threads_that_lack_records_are_not_reported() {
        let mut times = RunTimes::default();
        let lost = record(sys::PERF_RECORD_LOST, 0, &[0, 0, 5, 0], 0, 0);
        for record in [
            // It ran before we looked.
            switch(true, 1, 110),
            task(EXIT, 1, 120),
            // A switch is missing.
            task(FORK, 2, 100),
            switch(false, 2, 110),
            switch(false, 2, 120),
            task(EXIT, 2, 150),
            // Records were lost while it ran.
            task(FORK, 3, 100),
            lost,
            switch(false, 3, 160),
            task(EXIT, 3, 170),
            task(FORK, 4, 180),
            switch(false, 4, 190),
            task(EXIT, 4, 195),
        ] {
            times.take(3, &record, LAYOUT).unwrap();
        }
        assert_eq!(reported(&mut times), [(3, 4, 5)]);
    }

    #[test]
    fn damaged_records_change_nothing() {
        let mut times = RunTimes::default();
        for record in [switch(false, 1, 10), task(FORK, 1, 10)] {
            for length in 0..24 {
                assert_eq!(times.take(0, &record[..length], LAYOUT), None);
            }
        }
        assert!(times.threads.is_empty());
    }
}
