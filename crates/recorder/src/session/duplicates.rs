//! Samples that came twice.

use std::collections::HashMap;

use prof_model::Tid;

/// Threads that may be sampled twice, and which of their samples to keep.
///
/// A thread that appeared while we were opening events for its process may have been made by one
/// that had its events already: then it has inherited those, and was given its own on top. The
/// samples of inherited events carry the ids of their maker's, which tells them apart.
#[derive(Debug, Default)]
pub(crate) struct Duplicates {
    own_ids: HashMap<Tid, Vec<u64>>,
}

impl Duplicates {
    /// Of all events opened (id, thread), those of the `late` threads.
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

    /// The thread has ended; another one may get its number.
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
