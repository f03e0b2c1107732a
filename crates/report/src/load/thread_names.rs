//! What threads are called at the moment.

use prof_model::{Pid, Process, Tid};
use prof_perfdata::Record;
use rustc_hash::FxHashMap;

use crate::profile::{NameId, Names};

/// Remembers the names of threads until one may have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadNames {
    known: FxHashMap<(Pid, Tid), NameId>,
}

impl ThreadNames {
    /// Forgets all if `record` may be about a name. A thread without a name of its own has that of
    /// its process, so that one name can be that of many.
    pub(super) fn forget_changed(&mut self, record: &Record<'_>) {
        if let Record::Comm(_) | Record::Fork(_) | Record::Exit(_) = record {
            self.known.clear();
        }
    }

    /// The name of a thread; `:` and its number if it has none.
    pub(super) fn get(
        &mut self,
        pid: Pid,
        tid: Tid,
        process: Option<&Process>,
        names: &mut Names,
    ) -> NameId {
        let known = self.known.entry((pid, tid));
        *known.or_insert_with(
            || match process.and_then(|process| process.name(pid, tid)) {
                Some(name) => names.intern(name),
                None => names.intern(&format!(":{tid}")),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Processes;
    use prof_perfdata::{Comm, Stamp};

    use super::*;

    #[test]
    fn a_name_is_remembered_until_it_may_have_changed() {
        let mut processes = Processes::default();
        let mut names = Names::default();
        let mut threads = ThreadNames::default();
        let mut check = |processes: &Processes, record: Option<Record<'_>>, expected: [&str; 2]| {
            if let Some(record) = record {
                threads.forget_changed(&record);
            }
            let ids = [1, 2].map(|tid| threads.get(1, tid, processes.get(1), &mut names));
            assert_eq!(ids.map(|id| names[id].to_owned()), expected);
        };
        check(&processes, None, [":1", ":2"]);
        processes.rename(1, 1, "sh");
        let comm = Record::Comm(Comm {
            stamp: Stamp::default(),
            pid: 1,
            tid: 1,
            exec: true,
            name: "sh".as_ref(),
        });
        check(&processes, Some(comm), ["sh", "sh"]);
        processes.rename(1, 1, "python3");
        check(&processes, Some(comm), ["python3", "python3"]);
    }
}
