//! Processes whose memory does not answer: a page of it is in a file whose file system or disk
//! hangs, or waits for another process (userfaultfd), or its mappings are locked.
//!
//! Each costs time and a thread, which may hang for ever. So of one user, after a few, no process
//! is read any more: nobody uses up all threads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use prof_model::{Pid, printable};
use prof_procfs::Task;

/// The processes that did not answer.
#[derive(Debug, Default)]
pub(crate) struct SilentProcesses {
    any: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    processes: HashSet<Pid>,
    /// How many of each user were silent.
    users: HashMap<u32, usize>,
    /// The users of processes that were asked for.
    user_of: HashMap<Pid, Option<u32>>,
    names: BTreeSet<Box<str>>,
}

impl SilentProcesses {
    /// How many processes of a user may be silent before none of that user is read.
    const OF_USER: usize = 3;
    /// How many names are kept.
    const NAMES: usize = 8;
    /// How many users of processes are remembered before starting over.
    const REMEMBERED: usize = 1024;

    /// Whether a process is not to be read.
    pub(crate) fn contains(&self, pid: Pid) -> bool {
        self.any.load(Ordering::Acquire) && self.known(|known| known.contains(pid))
    }

    /// What a process answers, unless it is not to be asked.
    pub(crate) fn unless<T>(&self, pid: Pid, ask: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.contains(pid) {
            return None;
        }
        let answer = ask();
        if answer.is_none() {
            self.add(pid);
        }
        answer
    }

    /// A process has not answered. Process 0 stands for none.
    pub(crate) fn add(&self, pid: Pid) {
        if pid <= 0 {
            return;
        }
        let name = Task::of(pid).name();
        let name = printable(&String::from_utf8_lossy(&name)).into_owned();
        self.known(|known| {
            if known.processes.insert(pid)
                && let Some(user) = known.user(pid)
            {
                *known.users.entry(user).or_default() += 1;
            }
            if known.names.len() < Self::NAMES {
                known.names.insert(name.into());
            }
        });
        self.any.store(true, Ordering::Release);
    }

    /// A process has ended: another one may get its id.
    pub(crate) fn forget(&self, pid: Pid) {
        if self.any.load(Ordering::Acquire) {
            self.known(|known| {
                known.processes.remove(&pid);
                known.user_of.remove(&pid);
            });
        }
    }

    /// The names of processes that were silent, as far as they are kept.
    pub(crate) fn names(&self) -> Vec<Box<str>> {
        self.known(|known| known.names.iter().cloned().collect())
    }

    fn known<T>(&self, see: impl FnOnce(&mut Known) -> T) -> T {
        see(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn contains(&mut self, pid: Pid) -> bool {
        if self.processes.contains(&pid) {
            return true;
        }
        let mut counts = self.users.values();
        counts.any(|&count| count >= SilentProcesses::OF_USER)
            && self.user(pid).is_some_and(|user| {
                self.users.get(&user).copied().unwrap_or(0) >= SilentProcesses::OF_USER
            })
    }

    /// The user who runs a process.
    fn user(&mut self, pid: Pid) -> Option<u32> {
        if self.user_of.len() >= SilentProcesses::REMEMBERED {
            self.user_of.clear();
        }
        let read = || Some(Task::of(pid).status().ok()?.users()?.real);
        *self.user_of.entry(pid).or_insert_with(read)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    #[test]
    fn a_user_with_many_silent_processes_is_not_read_any_more() {
        let silent = SilentProcesses::default();
        let sleep = |_| Command::new("sleep").arg("60").spawn().expect("sleep");
        let mut sleeping: Vec<Child> = (0..SilentProcesses::OF_USER + 1).map(sleep).collect();
        let pids: Vec<Pid> = sleeping.iter().map(|it| it.id() as Pid).collect();
        let (last, first) = pids.split_last().expect("some");
        for (count, &pid) in first.iter().enumerate() {
            assert!(!silent.contains(pid), "{count}");
            silent.add(pid);
            assert!(silent.contains(pid), "{count}");
        }
        assert!(silent.contains(*last), "of the same user");
        silent.forget(first[0]);
        assert!(silent.contains(*last), "users do not change");
        silent.add(0);
        assert!(!silent.contains(0));
        for child in &mut sleeping {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
    }
}
