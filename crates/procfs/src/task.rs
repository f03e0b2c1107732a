//! A process or thread, by its folder in /proc.
//!
//! The main thread of a process may end before its others (`pthread_exit` in `main`). It stays
//! listed, but what the threads share is then seen only in the folders of the others.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::maps::Maps;
use crate::sched_stat::SchedStat;
use crate::stat::Stat;
use crate::status::Status;

/// A process or a thread. Once it has ended, its methods fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    folder: PathBuf,
}

/// The kinds of namespaces that matter to a profiler, namespaces(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Mounts.
    Mount,
    /// Process ids.
    Pid,
    /// Users and capabilities.
    User,
}

impl Namespace {
    /// The name of its link, and the inode of the machine's first one (linux/proc_ns.h).
    fn link(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Mount => ("ns/mnt", None),
            Self::Pid => ("ns/pid", Some("pid:[4026531836]")),
            Self::User => ("ns/user", Some("user:[4026531837]")),
        }
    }
}

impl Task {
    /// The process or thread with this id.
    pub fn of(id: i32) -> Self {
        Self {
            folder: format!("/proc/{id}").into(),
        }
    }

    /// A thread of a process.
    pub fn thread(pid: i32, tid: i32) -> Self {
        Self {
            folder: format!("/proc/{pid}/task/{tid}").into(),
        }
    }

    /// This process.
    pub fn this_process() -> Self {
        Self {
            folder: "/proc/self".into(),
        }
    }

    /// The calling thread.
    pub fn this_thread() -> Self {
        Self {
            folder: "/proc/thread-self".into(),
        }
    }

    /// Whether it exists: it has not ended, or nobody has waited for it yet.
    pub fn exists(&self) -> bool {
        fs::metadata(&self.folder).is_ok()
    }

    /// The id of its process, which is its own unless it is a thread; `None` if it has ended.
    pub fn process(&self) -> Option<i32> {
        self.status().ok()?.pid()
    }

    /// Reads its `status`.
    ///
    /// # Errors
    /// It has ended, or may not be read.
    pub fn status(&self) -> Result<Status, Error> {
        let bytes = self.read("status")?;
        Ok(Status::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Reads its `stat`, without allocating more than its path and its name.
    ///
    /// # Errors
    /// It has ended, or may not be read.
    pub fn stat(&self) -> Result<Stat, Error> {
        let path = self.folder.join("stat");
        let mut buffer = [0; Stat::LONGEST];
        let read = File::open(&path).and_then(|mut file| file.read(&mut buffer));
        match read {
            Ok(length) => Stat::parse(buffer.get(..length).unwrap_or_default())
                .ok_or(Error::Malformed { path }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Opens a file of the folder, to be read repeatedly: reading fails once this task has ended,
    /// even if another one gets its id.
    ///
    /// # Errors
    /// It has ended, or the file may not be read.
    pub fn open(&self, name: &str) -> Result<File, Error> {
        let path = self.folder.join(name);
        File::open(&path).map_err(|source| Error::Read { path, source })
    }

    /// Its name, 15 bytes at most; empty if it has ended.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.read("comm").unwrap_or_default();
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        name
    }

    /// The first word of its command line; empty if it has none or has ended.
    pub fn program(&self) -> Vec<u8> {
        self.arguments().into_iter().next().unwrap_or_default()
    }

    /// The words of its command line; none if it has ended.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        let line = self.read_shared("cmdline").unwrap_or_default();
        let words = line.split_inclusive(|&byte| byte == 0);
        words
            .map(|word| word.strip_suffix(b"\0").unwrap_or(word).to_vec())
            .collect()
    }

    /// Reads its mappings.
    ///
    /// # Errors
    /// It has ended, or may not be read.
    pub fn maps(&self) -> Result<Maps, Error> {
        Ok(Maps(self.read_shared("maps")?))
    }

    /// The threads of this process that have not ended, in ascending order.
    ///
    /// # Errors
    /// There is no such process, all its threads have ended, or it may not be read.
    pub fn threads(&self) -> Result<Vec<i32>, Error> {
        let path = self.folder.join("task");
        let threads = numbers_in(&path).and_then(|mut threads| {
            if self.stat().is_ok_and(|stat| stat.state.has_ended()) {
                threads.retain(|tid| {
                    let folder = path.join(tid.to_string());
                    !Self { folder }.stat().is_ok_and(|it| it.state.has_ended())
                });
            }
            match threads.is_empty() {
                true => Err(io::ErrorKind::NotFound.into()),
                false => Ok(threads),
            }
        });
        threads.map_err(|source| Error::Read { path, source })
    }

    /// Whether any of its threads goes on: has not ended, and was not killed.
    pub fn goes_on(&self) -> bool {
        let threads = self.threads().unwrap_or_default();
        threads.into_iter().any(|tid| {
            let folder = self.folder.join("task").join(tid.to_string());
            let thread = Self { folder };
            // In this order: the signal is pending until the thread begins to end.
            let is_killed = thread.status().is_ok_and(|status| status.is_killed());
            let is_ending = |stat: Stat| stat.is_exiting || stat.state.has_ended();
            !is_killed && thread.stat().is_ok_and(|stat| !is_ending(stat))
        })
    }

    /// The paths of its cgroups: one, or one for each hierarchy of the first version of cgroups.
    /// None if it has ended.
    pub fn cgroups(&self) -> Vec<String> {
        let text = self.read("cgroup").unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        paths.map(String::from).collect()
    }

    /// The children of this thread; none if the kernel does not list them (CONFIG_PROC_CHILDREN).
    fn children(&self) -> Vec<i32> {
        let text = self.read("children").unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let children = text.split_ascii_whitespace();
        children.filter_map(|child| child.parse().ok()).collect()
    }

    /// Nanoseconds that this thread has spent on CPUs: exact for a stopped thread.
    pub fn cpu_time(&self) -> Option<u64> {
        let file = self.open(SchedStat::FILE).ok()?;
        SchedStat::read_again(&file).map(|stat| stat.cpu_time)
    }

    /// Its root directory.
    pub fn root(&self) -> PathBuf {
        self.shared_folder().join("root")
    }

    /// A file by its path as this process sees it.
    pub fn below_root(&self, path: &Path) -> PathBuf {
        self.root().join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The files that it has open, by their paths as it sees them; none if that may not be known.
    pub fn open_files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.shared_folder().join("fd"));
        let entries = entries.into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok())
    }

    /// The program that it runs: a link that can be opened even if the file has been removed.
    pub fn exe(&self) -> PathBuf {
        self.shared_folder().join("exe")
    }

    /// The file mapped at these addresses, whichever file now has its path. Opening it takes
    /// privileges that plain users lack.
    pub fn mapped_file(&self, addresses: &Range<u64>) -> PathBuf {
        let Range { start, end } = addresses;
        self.shared_folder()
            .join(format!("map_files/{start:x}-{end:x}"))
    }

    /// The file that represents one of its namespaces.
    pub fn namespace(&self, kind: Namespace) -> PathBuf {
        self.shared_folder().join(kind.link().0)
    }

    /// Whether it is in the machine's first namespace of this kind; `None` if that is unknown.
    pub fn is_in_first(&self, kind: Namespace) -> Option<bool> {
        let first = Path::new(kind.link().1?);
        let found = fs::read_link(self.namespace(kind)).ok()?;
        Some(found == first)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.folder.join(name);
        fs::read(&path).map_err(|source| Error::Read { path, source })
    }

    fn read_shared(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.shared_folder().join(name);
        fs::read(&path).map_err(|source| Error::Read { path, source })
    }

    /// The folder that shows what the threads of a process share: memory, directories, namespaces.
    fn shared_folder(&self) -> Cow<'_, Path> {
        let shows = |folder: &Path| match fs::read_link(folder.join("root")) {
            // What may not be read is there.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
            Ok(_) => true,
        };
        if shows(&self.folder) {
            return Cow::Borrowed(&self.folder);
        }
        // Not the folders below `task`, which have no `map_files`.
        let threads = self.threads().unwrap_or_default().into_iter();
        let mut others = threads.map(|tid| Self::of(tid).folder);
        let other = others.find(|folder| shows(folder));
        other.map_or(Cow::Borrowed(&self.folder), Cow::Owned)
    }
}

/// All processes, in ascending order.
pub fn processes() -> Vec<i32> {
    numbers_in(Path::new("/proc")).unwrap_or_default()
}

/// The number that the kernel gave last to a process or thread of our PID namespace: it changes
/// when one starts. `None` if /proc/loadavg does not tell.
pub fn newest() -> Option<i32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().last()?.parse().ok()
}

/// The children of these processes, and theirs, except the `known` ones and their children.
pub fn descendants(of: &[i32], known: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut parents = of.to_vec();
    while let Some(parent) = parents.pop() {
        for tid in Task::of(parent).threads().unwrap_or_default() {
            let children = Task::thread(parent, tid).children().into_iter();
            let new = children.filter(|child| !known.contains(child) && found.insert(*child));
            parents.extend(new);
        }
    }
    found
}

/// Device and inode of the file at a path: they differ between any two namespaces or root
/// directories.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The path of an open file of ours, even if the file has been renamed.
pub fn descriptor(file: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

fn numbers_in(folder: &Path) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn we_ourselves() {
        let pid = std::process::id() as i32;
        let task = Task::of(pid);
        assert!(task.exists() && !task.name().is_empty() && !task.program().is_empty());
        assert!(task.threads().is_ok_and(|threads| threads.contains(&pid)));
        assert!(processes().contains(&pid));
        assert!(task.cpu_time().is_some_and(|time| time > 0));
        assert_eq!(task.status().unwrap().pid(), Some(pid));
        assert!(task.cgroups().iter().all(|path| path.starts_with('/')));
        assert_eq!(
            fs::read_link(task.exe()).unwrap(),
            std::env::current_exe().unwrap()
        );
        let ours = identity(&Task::this_process().namespace(Namespace::Mount));
        assert!(ours.is_some() && ours == identity(&task.namespace(Namespace::Mount)));
        let exe = std::env::current_exe().unwrap();
        assert!(task.below_root(&exe).exists());
    }

    #[test]
    fn a_killed_process_does_not_go_on() {
        for _ in 0..20 {
            let mut busy = Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap();
            let task = Task::of(busy.id() as i32);
            assert!(task.goes_on());
            busy.kill().unwrap();
            assert!(!task.goes_on(), "{:?}", task.stat());
            busy.wait().unwrap();
            assert!(!task.goes_on());
        }
    }

    #[test]
    fn nobody() {
        let nobody = Task::of(i32::MAX);
        assert!(!nobody.exists() && nobody.name().is_empty() && nobody.cgroups().is_empty());
        let error = nobody.status().unwrap_err();
        assert!(error.to_string().starts_with("/proc/2147483647/status: "));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
        assert!(nobody.threads().is_err() && nobody.stat().is_err());
    }

    #[test]
    fn children_and_theirs_are_found() {
        let script = "sleep 1000 & echo $!; wait";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = io::BufReader::new(shell.stdout.take().unwrap());
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        let (shell_id, sleep): (i32, i32) = (shell.id() as i32, line.trim().parse().unwrap());
        let ours = [std::process::id() as i32];
        let found = descendants(&ours, &BTreeSet::new());
        assert!(found.contains(&shell_id) && found.contains(&sleep));
        let known = descendants(&ours, &BTreeSet::from([shell_id]));
        assert!(!known.contains(&shell_id) && !known.contains(&sleep));
        // The shell's own: a bare system has no program of that name.
        let kill = format!("kill -9 {shell_id} {sleep}");
        let killed = std::process::Command::new("sh")
            .args(["-c", &kill])
            .status();
        assert!(killed.unwrap().success());
        shell.wait().unwrap();
    }
}
