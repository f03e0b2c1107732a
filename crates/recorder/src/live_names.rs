//! The names of run-time code for those who watch a recording.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prof_model::Pid;

/// The names of run-time code that were read from the memory of processes, as perf maps, while a
/// recording is made.
#[derive(Clone, Debug, Default)]
pub struct LiveNames(Arc<Mutex<HashMap<Pid, LiveMap>>>);

#[derive(Debug)]
struct LiveMap {
    text: Arc<str>,
    /// By the clock of the records.
    written_at: u64,
}

impl LiveNames {
    /// Maps are written this often, in nanoseconds.
    const INTERVAL: u64 = 500_000_000;
    /// The most bytes of all maps; then those that were written longest ago are dropped.
    const BYTES: usize = 128 << 20;

    /// The perf map of a process: lines of `START SIZE NAME`; `None` if nothing was read from its
    /// memory.
    pub fn perf_map(&self, pid: Pid) -> Option<Arc<str>> {
        let maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        maps.get(&pid).map(|map| Arc::clone(&map.text))
    }

    /// Replaces the map of a process, unless that was done a moment ago.
    pub(crate) fn write(&self, pid: Pid, now: u64, write: impl FnOnce(&mut String)) {
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = maps.get(&pid).map(|map| map.written_at);
        if written.is_some_and(|at| now.saturating_sub(at) < Self::INTERVAL) {
            return;
        }
        let mut text = String::new();
        write(&mut text);
        let map = LiveMap {
            text: text.into(),
            written_at: now,
        };
        maps.insert(pid, map);
        while maps.values().map(|map| map.text.len()).sum::<usize>() > Self::BYTES {
            let oldest = maps.iter().min_by_key(|(_, map)| map.written_at);
            let Some(pid) = oldest.map(|(&pid, _)| pid) else {
                return;
            };
            maps.remove(&pid);
        }
    }
}
