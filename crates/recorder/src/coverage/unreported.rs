//! Counts that no READ record reported.

use std::collections::{BTreeMap, HashSet};

use prof_model::{Pid, Tid};

use super::thread_name::ThreadName;
use super::{CoverageTracker, TrackedThread};

impl CoverageTracker {
    /// Divides `rest` among the threads without a READ record, by their samples.
    pub(super) fn divide(&mut self, id: u64, rest: u64, living: &BTreeMap<Tid, Pid>) {
        let mut sharers = self.sharers(id, living);
        let exact = sharers.len() == 1;
        if sharers.values().all(|&age| age == 0) {
            // A thread that the events were opened on takes precedence over those that inherit.
            let owner = self.owners.get(&id).copied().unwrap_or(0);
            if sharers.contains_key(&owner) {
                sharers.retain(|&tid, _| tid == owner);
            }
            sharers.values_mut().for_each(|age| *age = 1);
        }
        if sharers.is_empty() {
            // The thread that the event was opened on and that has ended without a sample of it; or
            // one that inherited it, and whose record was lost.
            let owner = self.owners.get(&id).copied();
            let owner = owner.filter(|tid| self.threads.contains_key(tid));
            let thread = self.threads.entry(owner.unwrap_or(0)).or_default();
            if owner.is_none() {
                thread.name = Some(ThreadName::others());
            }
            thread.take_part(id, rest, self.excludes_children);
        }
        let mut rest = u128::from(rest);
        let mut left: u128 = sharers.values().map(|&age| u128::from(age)).sum();
        for (tid, age) in sharers {
            let part = rest * u128::from(age) / left.max(1);
            rest -= part;
            left -= u128::from(age);
            let thread = self.threads.entry(tid).or_default();
            thread.pid = living.get(&tid).copied().unwrap_or(thread.pid);
            thread.take_part(id, u64::try_from(part).unwrap_or(u64::MAX), exact);
        }
    }

    /// The threads that may have used the unreported part of this event's count, with the work that
    /// their samples imply. The kernel writes such a record for a thread that inherited the event,
    /// but not for the one that it was opened on, which may have ended, and not yet for living
    /// threads. The kernel, or we, may also have lost a record.
    fn sharers(&self, id: u64, living: &BTreeMap<Tid, Pid>) -> BTreeMap<Tid, u64> {
        let owner = self.owners.get(&id).copied();
        let owners: HashSet<Tid> = self.owners.values().copied().collect();
        let inherits = |tid: &&Tid| !self.excludes_children && !owners.contains(tid);
        let heirs = living.keys().filter(inherits);
        let itself = owner.filter(|tid| living.contains_key(tid));
        let mut sharers: BTreeMap<Tid, u64> =
            heirs.copied().chain(itself).map(|tid| (tid, 0)).collect();
        for (&tid, thread) in &self.threads {
            match thread.events.iter().find(|counted| counted.id == id) {
                Some(counted) if counted.reported => {
                    sharers.remove(&tid);
                }
                Some(counted) if counted.age > 0 => {
                    sharers.insert(tid, counted.age);
                }
                _ => {}
            }
        }
        sharers
    }
}

impl TrackedThread {
    /// Takes a share of the unreported count. `exact`: no other thread may have used it.
    fn take_part(&mut self, id: u64, part: u64, exact: bool) {
        let counted = self.counted(id);
        counted.used = counted.used.saturating_add(part);
        counted.estimated |= !exact;
    }
}
