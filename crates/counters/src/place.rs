//! The places where a target is counted: each has its own events in the kernel.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

use prof_events::counting::{Place, find_cgroup};
use prof_events::system::System;
use prof_model::{Pid, Tid};
use prof_procfs::{Stat, Task};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::PidfdFlags;

use crate::error::{OpenError, ReadError};
use crate::target::Target;

/// One of the places where a target is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceName {
    /// A thread.
    Thread(Tid),
    /// A CPU.
    Cpu(u32),
}

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(tid) => write!(f, "thread {tid}"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
        }
    }
}

/// All places of a target.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) sites: Vec<Site>,
    life: Liveness,
}

/// A place and what keeps it open.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: PlaceName,
    cgroup: Option<Arc<File>>,
}

impl Site {
    pub(crate) fn place(&self) -> Place<'_> {
        match (self.name, &self.cgroup) {
            (PlaceName::Thread(tid), _) => Place::Thread(tid),
            (PlaceName::Cpu(cpu), None) => Place::Cpu(cpu),
            (PlaceName::Cpu(cpu), Some(folder)) => Place::Cgroup(folder.as_fd(), cpu),
        }
    }
}

/// How to detect the end of the target.
#[derive(Debug)]
enum Liveness {
    /// The thread that opened it; and for other threads, one of the next variants.
    ThisThread(ThreadId, Box<Liveness>),
    /// A descriptor that is readable once the task has ended, and the task's name in messages.
    Task(OwnedFd, String),
    /// The task's `stat` in /proc, where there is no such descriptor.
    Stat(File, String),
    /// The `online` files of those CPUs that can go offline.
    Cpus(Vec<(u32, File)>),
    Unknown,
}

impl Places {
    pub(crate) fn of(target: &Target) -> Result<Self, OpenError> {
        match target {
            Target::ThisThread => {
                let tid = rustix::thread::gettid().as_raw_nonzero().get();
                let life = Liveness::of_thread(tid).unwrap_or(Liveness::Unknown);
                let life = Liveness::ThisThread(std::thread::current().id(), Box::new(life));
                Ok(Self {
                    sites: vec![Site::thread(tid)],
                    life,
                })
            }
            &Target::Thread(tid) => {
                let life = Liveness::of_thread(tid).map_err(|_| OpenError::NoThread(tid))?;
                Ok(Self {
                    sites: vec![Site::thread(tid)],
                    life,
                })
            }
            &Target::Process(pid) => {
                let missing = |_| OpenError::NoProcess(pid);
                let life = Liveness::of_process(pid).map_err(missing)?;
                let threads = Task::of(pid)
                    .threads()
                    .map_err(|_| OpenError::NoProcess(pid))?;
                let sites = threads.into_iter().map(Site::thread).collect();
                Ok(Self { sites, life })
            }
            &Target::Cpu(cpu) => match online()?.contains(&cpu) {
                true => Ok(Self::cpus(&[cpu], None)),
                false => Err(OpenError::NoCpu(cpu)),
            },
            Target::AllCpus => Ok(Self::cpus(&online()?, None)),
            Target::Cgroup(name) => {
                let folder = Arc::new(find_cgroup(name)?);
                Ok(Self::cpus(&online()?, Some(folder)))
            }
        }
    }

    fn cpus(cpus: &[u32], cgroup: Option<Arc<File>>) -> Self {
        let site = |&cpu: &u32| Site {
            name: PlaceName::Cpu(cpu),
            cgroup: cgroup.clone(),
        };
        Self {
            sites: cpus.iter().map(site).collect(),
            life: Liveness::of_cpus(Path::new("/sys/devices/system/cpu"), cpus),
        }
    }

    /// Removes other CPUs than these, unless none would remain.
    pub(crate) fn retain_cpus(&mut self, cpus: &[u32]) {
        let kept = |site: &Site| matches!(site.name, PlaceName::Cpu(cpu) if cpus.contains(&cpu));
        if self.sites.iter().any(kept) {
            self.sites.retain(kept);
        }
    }

    /// Whether it is the calling thread that opened the target for itself.
    pub(crate) fn is_this_thread(&self) -> bool {
        matches!(&self.life, Liveness::ThisThread(id, _) if *id == std::thread::current().id())
    }

    /// # Errors
    ///
    /// The target is gone.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        self.life.check()
    }
}

impl Site {
    fn thread(tid: Tid) -> Self {
        Self {
            name: PlaceName::Thread(tid),
            cgroup: None,
        }
    }
}

impl Liveness {
    fn of_process(pid: Pid) -> io::Result<Self> {
        Self::of_task(pid, PidfdFlags::empty(), format!("process {pid}"))
    }

    fn of_thread(tid: Tid) -> io::Result<Self> {
        /// `PIDFD_THREAD` (Linux 6.9) of include/uapi/linux/pidfd.h.
        const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);
        Self::of_task(tid, THREAD, format!("thread {tid}"))
    }

    fn of_task(id: i32, flags: PidfdFlags, name: String) -> io::Result<Self> {
        // Zero and less are not ids but ways to say "several".
        let known = (id > 0)
            .then(|| rustix::process::Pid::from_raw(id))
            .flatten();
        let raw = known.ok_or(io::ErrorKind::NotFound)?;
        match rustix::process::pidfd_open(raw, flags) {
            Ok(fd) => Ok(Self::Task(fd, name)),
            // Reading its file fails with ESRCH once the task is gone, even if another one gets the
            // id.
            Err(_) => Ok(Self::Stat(Task::of(id).open("stat")?, name)),
        }
    }

    fn of_cpus(folder: &Path, cpus: &[u32]) -> Self {
        let file = |cpu: &u32| {
            Some((
                *cpu,
                File::open(folder.join(format!("cpu{cpu}/online"))).ok()?,
            ))
        };
        Self::Cpus(cpus.iter().filter_map(file).collect())
    }

    fn check(&self) -> Result<(), ReadError> {
        match self {
            Self::ThisThread(id, _) if *id == std::thread::current().id() => Ok(()),
            Self::ThisThread(_, life) => life.check(),
            Self::Task(fd, name) if has_ended(fd) => Err(ReadError::TargetExited(name.clone())),
            Self::Stat(file, name) if !is_alive(file) => Err(ReadError::TargetExited(name.clone())),
            Self::Cpus(files) => match files.iter().find(|(_, file)| !is_online(file)) {
                Some((cpu, _)) => Err(ReadError::CpuLost(*cpu)),
                None => Ok(()),
            },
            Self::Task(..) | Self::Stat(..) | Self::Unknown => Ok(()),
        }
    }
}

fn has_ended(fd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn is_alive(stat: &File) -> bool {
    Stat::read_again(stat).is_some_and(|stat| !stat.state.has_ended())
}

fn is_online(file: &File) -> bool {
    let mut state = [0];
    // An unreadable file proves nothing.
    !matches!(file.read_at(&mut state, 0), Ok(1)) || state != *b"0"
}

fn online() -> Result<Vec<u32>, OpenError> {
    let what = "find out which CPUs are online";
    let system = System::read().map_err(|source| OpenError::System { what, source })?;
    Ok(system.cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_goes_offline_is_noticed() {
        let folder = std::env::temp_dir().join(format!("prof-counters-{}", std::process::id()));
        let file = folder.join("cpu1/online");
        std::fs::create_dir_all(folder.join("cpu1")).unwrap();
        std::fs::write(&file, "1\n").unwrap();
        let life = Liveness::of_cpus(&folder, &[0, 1]);
        assert_eq!(life.check(), Ok(()));
        std::fs::write(&file, "0\n").unwrap();
        assert_eq!(life.check(), Err(ReadError::CpuLost(1)));
        std::fs::write(&file, "1\n").unwrap();
        assert_eq!(life.check(), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn check_end(life: impl Fn(i32) -> io::Result<Liveness>, name: &str) {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = child.id() as i32;
        let life = life(id).unwrap();
        assert_eq!(life.check(), Ok(()));
        child.kill().unwrap();
        // It is a zombie then, and gone after that.
        while !Task::of(id).stat().unwrap().state.has_ended() {
            std::thread::yield_now();
        }
        let expected = Err(ReadError::TargetExited(format!("{name} {id}")));
        assert_eq!(life.check(), expected);
        child.wait().unwrap();
        assert_eq!(life.check(), expected);
    }

    #[test]
    fn the_end_of_a_task_is_noticed() {
        check_end(Liveness::of_process, "process");
        check_end(Liveness::of_thread, "thread");
        check_end(
            |id| {
                let stat = Task::of(id).open("stat")?;
                Ok(Liveness::Stat(stat, format!("task {id}")))
            },
            "task",
        );
        assert!(Liveness::of_process(i32::MAX).is_err());
        assert!(Liveness::of_process(0).is_err());
        assert!(Liveness::of_thread(-1).is_err());
    }
}
