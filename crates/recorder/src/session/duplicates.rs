//! Duplicate samples.

use std::collections::HashMap;

use prof_model::Tid;

/// Threads that may be sampled twice, and which of their samples to keep.
///
/// A thread that appeared while we opened events for its process may have been created by one that
/// already had its events: then it has inherited those, and got its own as well. The samples of
/// inherited events carry the ids of the parent's events, which distinguishes them.
#[derive(Debug, Default)]
pub(crate) struct Duplicates {
    own_ids: HashMap<Tid, Vec<u64>>,
}

impl Duplicates {
    /// Selects those of the `late` threads from all opened events (id, thread).
    pub(crate) fn new<'a>(ids: impl Iterator<Item = &'a (u64, Tid)> + Clone, late: &[Tid]) -> Self {
        let of = |late: &Tid| {
            let own = ids.clone().filter(|(_, tid)| tid == late);
            (*late, own.map(|&(id, _)| id).collect())
        };
        Self {
            own_ids: late.iter().map(of).collect(),
        }
    }

    /// Whether this sample came through an inherited event of a thread with events of its own.
    pub(crate) fn contains(&self, tid: Tid, id: Option<u64>) -> bool {
        if self.own_ids.is_empty() {
            return false;
        }
        match (self.own_ids.get(&tid), id) {
            (Some(own), Some(id)) => !own.is_empty() && !own.contains(&id),
            _ => false,
        }
    }

    /// The thread has ended; another one may get its id.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.own_ids.remove(&tid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_threads_keep_their_own_samples_only() {
        let mut duplicates = Duplicates::new([(1, 10), (2, 10), (3, 11), (4, 11)].iter(), &[11]);
        let check = |duplicates: &Duplicates, tid, id, expected| {
            assert_eq!(duplicates.contains(tid, Some(id)), expected, "{tid} {id}");
        };
        check(&duplicates, 10, 1, false);
        check(&duplicates, 11, 3, false);
        check(&duplicates, 11, 1, true);
        check(&duplicates, 12, 1, false);
        duplicates.forget(11);
        check(&duplicates, 11, 1, false);
    }
}
