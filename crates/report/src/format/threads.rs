//! Samples by thread, and the names of threads and processes, for formats with threads.

use std::collections::BTreeMap;

use prof_model::{Pid, Tid};

use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{NameId, Sample};

/// The threads of which samples are shown.
pub(super) struct Threads<'p> {
    threads: Vec<Thread<'p>>,
    /// By process: its name.
    processes: BTreeMap<Pid, &'p str>,
}

/// One thread.
pub(super) struct Thread<'p> {
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    /// Its last name: the first ones are often its parent's.
    pub(super) name: &'p str,
    /// Its visible samples, in time order. At least one.
    pub(super) samples: Vec<Sample>,
}

impl<'p> Threads<'p> {
    pub(super) fn new(shown: &FilteredSamples<'p>) -> Self {
        let names = &shown.symbolized().profile().names;
        let mut by_thread: BTreeMap<(Pid, Tid), Vec<Sample>> = BTreeMap::new();
        for &sample in shown.samples() {
            let thread = by_thread.entry((sample.pid, sample.tid)).or_default();
            thread.push(sample);
        }
        let thread = |((pid, tid), samples): (_, Vec<Sample>)| Thread {
            pid,
            tid,
            name: samples.last().map_or("", |sample| &names[sample.name]),
            samples,
        };
        let processes = process_names(shown);
        Self {
            threads: by_thread.into_iter().map(thread).collect(),
            processes: processes
                .into_iter()
                .map(|(pid, name)| (pid, &names[name]))
                .collect(),
        }
    }

    /// All threads by process and thread id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Thread<'p>> {
        self.threads.iter()
    }

    /// The name of a process: that of its main thread if it was ever sampled, otherwise that of
    /// the thread with the lowest id.
    pub(super) fn process_name(&self, pid: Pid) -> &'p str {
        self.processes.get(&pid).copied().unwrap_or_default()
    }
}

fn process_names(shown: &FilteredSamples<'_>) -> BTreeMap<Pid, NameId> {
    let mut best: BTreeMap<Pid, ((bool, Tid), NameId)> = BTreeMap::new();
    for sample in shown.symbolized().profile().samples.iter() {
        let rank = (sample.tid != sample.pid, sample.tid);
        let known = best.entry(sample.pid).or_insert((rank, sample.name));
        if rank <= known.0 {
            *known = (rank, sample.name);
        }
    }
    best.into_iter()
        .map(|(pid, (_, name))| (pid, name))
        .collect()
}
