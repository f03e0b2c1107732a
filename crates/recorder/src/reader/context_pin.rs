//! Keeps the events of parents from being swapped.
//!
//! If a thread and its children all have copies of the same events, the kernel swaps events as it
//! switches between them. So a shell that starts one short command after the other continues with
//! events that were just created, whose first period never ends, and a twentieth of its work is
//! sampled. That is why each thread that creates threads or processes gets a [`ContextPin`].

use std::collections::HashMap;

use prof_events::ContextPin;
use prof_model::Tid;
use prof_perfdata::Record;

/// The pins of living parents.
#[derive(Debug, Default)]
pub(crate) struct ContextPins {
    held: HashMap<Tid, ContextPin>,
}

impl ContextPins {
    /// Each takes a descriptor.
    const MOST: usize = 512;

    /// Handles a record that may report that a thread created another, or has ended.
    pub(crate) fn notice(&mut self, record: &Record<'_>) {
        match record {
            Record::Fork(task) => self.pin(task.parent_tid),
            Record::Exit(task) => {
                self.held.remove(&task.tid);
            }
            _ => {}
        }
    }

    fn pin(&mut self, parent: Tid) {
        if self.held.len() < Self::MOST && !self.held.contains_key(&parent) {
            // A thread that has ended or gained privileges since gets none.
            self.held
                .extend(ContextPin::on(parent).map(|pin| (parent, pin)));
        }
    }
}

#[cfg(test)]
mod tests {
    use prof_perfdata::{Stamp, Task};

    use super::*;

    #[test]
    fn parents_are_held_until_they_end() {
        let tid = std::process::id() as Tid;
        let task = |tid: Tid, parent_tid: Tid| Task {
            stamp: Stamp::default(),
            pid: tid,
            tid,
            parent_pid: parent_tid,
            parent_tid,
            time: 0,
            existed: false,
        };
        let mut pins = ContextPins::default();
        let mut check = |record: Record<'_>, expected: &[Tid]| {
            pins.notice(&record);
            let held: Vec<Tid> = pins.held.keys().copied().collect();
            assert_eq!(held, expected, "{record:?}");
        };
        check(Record::Fork(task(1, tid)), &[tid]);
        check(Record::Fork(task(2, tid)), &[tid]);
        check(Record::Fork(task(3, -1)), &[tid]);
        check(Record::Exit(task(2, tid)), &[tid]);
        check(Record::Exit(task(tid, tid)), &[]);
    }
}
