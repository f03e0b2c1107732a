//! Samples by thread, and the names of threads and processes, for formats with threads.

use std::collections::BTreeMap;

use prof_model::{Pid, Tid};
use rustc_hash::FxHashMap;

use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Sample, ThreadNameId, ThreadNames, is_unnamed};

/// The threads of which samples are shown.
pub(in crate::format) struct Threads<'p> {
    threads: Vec<ThreadSamples<'p>>,
    names: &'p ThreadNames,
    /// By process: its name.
    processes: FxHashMap<Pid, ThreadNameId>,
}

/// One thread.
pub(in crate::format) struct ThreadSamples<'p> {
    pub(in crate::format) pid: Pid,
    pub(in crate::format) tid: Tid,
    /// Its last name.
    pub(in crate::format) name: &'p str,
    /// Its visible samples, in time order. At least one.
    pub(in crate::format) samples: Vec<Sample>,
}

impl<'p> Threads<'p> {
    pub(in crate::format) fn new(shown: &FilteredSamples<'p>) -> Self {
        let names = &shown.symbolized().profile().names;
        let mut by_thread: BTreeMap<(Pid, Tid), Vec<Sample>> = BTreeMap::new();
        for &sample in shown.samples() {
            let thread = by_thread.entry((sample.pid, sample.tid)).or_default();
            thread.push(sample);
        }
        let thread = |((pid, tid), samples): (_, Vec<Sample>)| ThreadSamples {
            pid,
            tid,
            name: last_name(&samples, names),
            samples,
        };
        Self {
            threads: by_thread.into_iter().map(thread).collect(),
            names,
            processes: shown.symbolized().profile().process_names(),
        }
    }

    /// All threads by process and thread id.
    pub(in crate::format) fn iter(&self) -> impl Iterator<Item = &ThreadSamples<'p>> {
        self.threads.iter()
    }

    /// The name of a process.
    pub(in crate::format) fn process_name(&self, pid: Pid) -> &'p str {
        let name = self.processes.get(&pid);
        name.map_or("", |&name| &self.names[name])
    }
}

/// The last name of a thread: the first ones are often its parent's.
fn last_name<'p>(samples: &[Sample], names: &'p ThreadNames) -> &'p str {
    let mut last = samples
        .iter()
        .rev()
        .map(|sample| (sample, &names[sample.name]));
    let named = last
        .clone()
        .find(|(sample, name)| !is_unnamed(name, sample.tid));
    named.or_else(|| last.next()).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestProfile, everything};

    #[test]
    fn a_thread_without_a_name_takes_none_from_its_process() {
        let symbolized = TestProfile::of(&[
            ":1/1/1 main 1",
            "worker/1/2 main 2",
            ":2/1/2 main 3",
            ":9/9/9 main 4",
        ]);
        let filter = everything();
        let shown = FilteredSamples::new(&symbolized, &filter).unwrap();
        let threads = Threads::new(&shown);
        let names: Vec<&str> = threads.iter().map(|thread| thread.name).collect();
        assert_eq!(names, [":1", "worker", ":9"]);
        assert_eq!(
            [1, 9].map(|pid| threads.process_name(pid)),
            ["worker", ":9"]
        );
    }
}
