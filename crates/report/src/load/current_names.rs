//! What threads are called at the moment.

use std::sync::Arc;

use prof_model::{Pid, Process, Processes, Tid};
use prof_perfdata::Record;
use rustc_hash::FxHashMap;

use crate::profile::{ThreadNameId, ThreadNames, unnamed};

/// Remembers the names of threads.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentNames {
    /// Until one may have changed.
    known: FxHashMap<(Pid, Tid), ThreadNameId>,
    /// Of threads that have ended, until others have their ids. The kernel writes the EXIT record
    /// before the thread's work is done: it has yet to free the memory of the process.
    ended: FxHashMap<(Pid, Tid), Arc<str>>,
}

impl CurrentNames {
    /// Handles a record, before `processes` does.
    ///
    /// A thread without a name of its own has that of its process, so that one name can be that of
    /// many.
    pub(super) fn follow(&mut self, record: &Record<'_>, processes: &Processes) {
        match record {
            Record::Comm(_) => {}
            Record::Fork(task) => {
                self.ended.remove(&(task.pid, task.tid));
            }
            Record::Exit(task) => {
                let (pid, tid) = (task.pid, task.tid);
                let process = processes.get(pid);
                if let Some(name) = process.and_then(|process| process.name(pid, tid)) {
                    self.ended.insert((pid, tid), Arc::clone(name));
                }
            }
            _ => return,
        }
        self.known.clear();
    }

    /// The name of a thread; `:` and its number if it has none. No record of perf names the idle
    /// task.
    pub(super) fn get(
        &mut self,
        pid: Pid,
        tid: Tid,
        process: Option<&Process>,
        names: &mut ThreadNames,
    ) -> ThreadNameId {
        let ended = &self.ended;
        *self.known.entry((pid, tid)).or_insert_with(|| {
            let own = process.and_then(|process| process.own_name(tid));
            let main = || process.and_then(|process| process.own_name(pid));
            let name = own
                .or_else(|| ended.get(&(pid, tid)))
                .or_else(main)
                .or_else(|| ended.get(&(pid, pid)));
            match name {
                Some(name) => names.intern(name),
                None if (pid, tid) == (0, 0) => names.intern("swapper"),
                None => names.intern(&unnamed(tid)),
            }
        })
    }

    /// The last name of a process's main thread, if any record says.
    pub(super) fn main<'a>(&'a self, pid: Pid, process: Option<&'a Process>) -> Option<&'a str> {
        let living = process.and_then(|process| process.own_name(pid));
        let name = living.or_else(|| self.ended.get(&(pid, pid)));
        name.map(|name| &**name)
    }

    /// How many names of ended threads it holds.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Names have other numbers from now on, and of ended threads only these are needed.
    pub(super) fn renumber(&mut self, mut is_needed: impl FnMut(Pid, Tid) -> bool) {
        self.known.clear();
        self.ended.retain(|&(pid, tid), _| is_needed(pid, tid));
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Modules;
    use prof_perfdata::{Comm, Stamp, Task, follow};

    use super::*;

    fn comm(tid: Tid, exec: bool, name: &str) -> Record<'_> {
        Record::Comm(Comm {
            stamp: Stamp::default(),
            pid: 1,
            tid,
            exec,
            name: name.as_ref(),
        })
    }

    fn task((parent_pid, parent_tid): (Pid, Tid), (pid, tid): (Pid, Tid)) -> Task {
        Task {
            stamp: Stamp::default(),
            pid,
            tid,
            parent_pid,
            parent_tid,
            time: 0,
            existed: false,
        }
    }

    /// Follows the records one after the other, and looks at the names of threads 1 and 2 of
    /// process 1 after each.
    fn check(steps: &[(Record<'_>, [&str; 2])]) {
        let (mut processes, mut modules) = (Processes::default(), Modules::default());
        let mut names = ThreadNames::default();
        let mut threads = CurrentNames::default();
        for (record, expected) in steps {
            threads.follow(record, &processes);
            follow(record, &mut processes, &mut modules);
            let ids = [1, 2].map(|tid| threads.get(1, tid, processes.get(1), &mut names));
            assert_eq!(ids.map(|id| names[id].to_owned()), *expected, "{record:?}");
        }
    }

    #[test]
    fn a_name_is_remembered_until_it_may_have_changed() {
        check(&[
            (Record::Exit(task((1, 1), (1, 1))), [":1", ":2"]),
            (comm(1, true, "sh"), ["sh", "sh"]),
            (comm(1, true, "python3"), ["python3", "python3"]),
        ]);
    }

    #[test]
    fn the_idle_task_has_a_name() {
        let mut names = ThreadNames::default();
        let idle = CurrentNames::default().get(0, 0, None, &mut names);
        assert_eq!(&names[idle], "swapper");
    }

    #[test]
    fn threads_keep_their_names_after_their_end_until_others_have_their_ids() {
        let fork = |parent, child| Record::Fork(task(parent, child));
        let exit = |tid| Record::Exit(task((1, 1), (1, tid)));
        check(&[
            (comm(1, true, "server"), ["server", "server"]),
            (fork((1, 1), (1, 2)), ["server", "server"]),
            (comm(2, false, "worker"), ["server", "worker"]),
            (exit(1), ["server", "worker"]),
            (exit(2), ["server", "worker"]),
            // Of an unknown parent.
            (fork((9, 9), (1, 1)), [":1", "worker"]),
            (comm(1, true, "ls"), ["ls", "worker"]),
            (fork((1, 1), (1, 2)), ["ls", "ls"]),
        ]);
    }
}
