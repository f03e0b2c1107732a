//! The sampled threads: one by one, or all on a CPU.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use prof_model::{Pid, Tid};
use prof_procfs::Task;

use crate::error::{EVERYBODY, Error};
use crate::system;

/// Which threads to sample. Their later children, threads and processes, belong to them, unless an
/// event is not inherited.
#[derive(Clone, Debug)]
pub enum Threads {
    /// One that waits to call `exec`, or the one that forks it; sampling begins with the `exec`.
    UntilExec(Tid),
    /// All threads of running processes; sampling begins with
    /// [`Sampler::enable`](crate::Sampler::enable).
    Of(Vec<Pid>),
    /// These running threads and no others of their processes; sampling begins in the same way.
    Only(Vec<Tid>),
    /// Everything on a CPU; sampling begins in the same way.
    OnCpus(CpuWide),
}

/// Everything on CPUs.
#[derive(Clone, Debug, Default)]
pub struct CpuWide {
    /// On which CPUs; on all that are online if `None`.
    pub cpus: Option<Vec<u32>>,
    /// Only while the thread that runs belongs to the cgroup of this folder.
    pub cgroup: Option<Arc<File>>,
}

/// The threads whose event is opened on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MonitoredThreads<'a> {
    /// A thread's; 0 is the caller.
    Thread(Tid),
    /// All threads.
    Everybody,
    /// All threads of the cgroup with this folder.
    Cgroup(BorrowedFd<'a>),
}

impl MonitoredThreads<'_> {
    /// The calling thread's.
    pub(crate) const CALLER: Self = Self::Thread(0);
}

impl Threads {
    /// Whether it is CPUs that are sampled.
    pub fn are_all(&self) -> bool {
        matches!(self, Self::OnCpus(_))
    }

    /// Whether they ran before anybody thought of sampling them.
    pub(crate) fn are_others(&self) -> bool {
        matches!(self, Self::Of(_) | Self::Only(_))
    }

    /// Fails if one of the requested threads does not exist.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self::Only(tids) = self else {
            return Ok(());
        };
        let gone = |tid: &&Tid| !Task::of(**tid).exists();
        match tids.iter().find(gone) {
            Some(&tid) => Err(Error::NoThread { tid }),
            None => Ok(()),
        }
    }

    /// The threads that there are by now, in ascending order.
    pub(crate) fn find(&self) -> Result<Vec<Tid>, Error> {
        let mut threads = match self {
            Self::UntilExec(tid) => vec![*tid],
            Self::OnCpus(_) => vec![EVERYBODY],
            Self::Only(tids) => tids.clone(),
            Self::Of(pids) => {
                let mut threads = Vec::new();
                for &pid in pids {
                    let found = Task::of(pid)
                        .threads()
                        .map_err(|_| Error::NoProcess { pid })?;
                    threads.extend(found);
                }
                threads
            }
        };
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    /// The CPUs to open events on, of those that are online.
    pub(crate) fn cpus(&self, online: &[u32]) -> Result<Vec<u32>, Error> {
        let requested = match self {
            Self::OnCpus(CpuWide {
                cpus: Some(cpus), ..
            }) => cpus,
            _ if online.is_empty() => {
                return Err(Error::System {
                    what: "find a CPU",
                    source: io::ErrorKind::NotFound.into(),
                });
            }
            _ => return Ok(online.to_vec()),
        };
        if let Some(&cpu) = requested.iter().find(|cpu| !online.contains(cpu)) {
            let online = system::list(online);
            return Err(Error::NoCpu { cpu, online });
        }
        let mut cpus = requested.clone();
        cpus.sort_unstable();
        cpus.dedup();
        Ok(cpus)
    }

    /// The kernel's target of these events. A tracking event is not bound to a cgroup: a thread
    /// that joins it may have started, and mapped its files, elsewhere.
    pub(crate) fn monitored(&self, tid: Tid, only_tracks: bool) -> MonitoredThreads<'_> {
        match self {
            Self::OnCpus(CpuWide {
                cgroup: Some(folder),
                ..
            }) if !only_tracks => MonitoredThreads::Cgroup(folder.as_fd()),
            _ if tid == EVERYBODY => MonitoredThreads::Everybody,
            _ => MonitoredThreads::Thread(tid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_the_requested_ones_that_are_online() {
        let check = |requested: Option<&[u32]>, expected: Result<&[u32], &str>| {
            let cpus = requested.map(<[u32]>::to_vec);
            let threads = Threads::OnCpus(CpuWide { cpus, cgroup: None });
            let found = threads.cpus(&[0, 1, 3]).map_err(|error| error.to_string());
            match expected {
                Ok(expected) => assert_eq!(found.as_deref(), Ok(expected)),
                Err(words) => assert!(found.is_err_and(|error| error.contains(words))),
            }
        };
        check(None, Ok(&[0, 1, 3]));
        check(Some(&[3, 0, 3]), Ok(&[0, 3]));
        check(Some(&[0, 2]), Err("CPU 2 is not online: 0-1,3 are"));
    }

    #[test]
    fn a_thread_that_is_not_there_is_named() {
        let error = Threads::Only(vec![i32::MAX]).check();
        assert!(matches!(error, Err(Error::NoThread { tid: i32::MAX })));
        let own = rustix::thread::gettid().as_raw_pid();
        assert!(Threads::Only(vec![own]).check().is_ok());
    }
}
