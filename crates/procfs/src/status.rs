//! /proc/PID/status.

use std::str::FromStr;

/// The lines of /proc/PID/status: proc_pid_status(5). A line that is missing, because the kernel is
/// older or configured otherwise, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status(String);

/// User or group ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The user or group of the process.
    pub real: u32,
    /// The one whose rights it has.
    pub effective: u32,
    /// The one whose rights it has to files.
    pub file_system: u32,
}

/// What seccomp does to a task's system calls, seccomp(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// Nothing.
    #[default]
    Off,
    /// Allows a handful of system calls (mode 1).
    Strict,
    /// Decides by filters (mode 2).
    Filter,
}

impl Status {
    /// Parses the text of the file.
    pub fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The id of its process: `Tgid`.
    pub fn pid(&self) -> Option<i32> {
        self.first("Tgid:")
    }

    /// The id of its parent, or of the process that has adopted it: `PPid`.
    pub fn parent(&self) -> Option<i32> {
        self.first("PPid:")
    }

    /// The id of the process that traces it; 0 if none does.
    pub fn tracer(&self) -> Option<i32> {
        self.first("TracerPid:")
    }

    /// The id of a process or thread in its own PID namespace: the last one of `NSpid` (Linux 4.1).
    pub fn inner_pid(&self) -> Option<i32> {
        self.numbers::<i32>("NSpid:")?.last().copied()
    }

    /// Its user ids.
    pub fn users(&self) -> Option<Ids> {
        self.ids("Uid:")
    }

    /// Its group ids.
    pub fn groups(&self) -> Option<Ids> {
        self.ids("Gid:")
    }

    /// Its supplementary groups.
    pub fn supplementary_groups(&self) -> Option<Vec<u32>> {
        self.numbers("Groups:")
    }

    /// Its effective capabilities, as the kernel's bits.
    pub fn capabilities(&self) -> Option<u64> {
        self.bits("CapEff:")
    }

    /// Whether it ignores a signal.
    pub fn ignores(&self, signal: i32) -> bool {
        let ignored = self.bits("SigIgn:").unwrap_or(0);
        ignored >> (signal - 1) & 1 != 0
    }

    /// Whether it handles a signal.
    pub fn catches(&self, signal: i32) -> bool {
        let caught = self.bits("SigCgt:").unwrap_or(0);
        caught >> (signal - 1) & 1 != 0
    }

    /// Whether this thread is about to end by a signal: the kernel sends all threads of its process
    /// SIGKILL, whichever signal it was.
    pub(crate) fn is_killed(&self) -> bool {
        const SIGKILL: u64 = 9;
        let pending = self.bits("SigPnd:").unwrap_or(0);
        pending >> (SIGKILL - 1) & 1 != 0
    }

    /// Whether its system calls are filtered.
    pub fn seccomp(&self) -> Seccomp {
        match self.first("Seccomp:") {
            Some(1) => Seccomp::Strict,
            Some(2) => Seccomp::Filter,
            _ => Seccomp::Off,
        }
    }

    /// Whether it can gain no privileges by executing a file: `NoNewPrivs` (Linux 4.10).
    pub fn gains_no_privileges(&self) -> bool {
        self.first("NoNewPrivs:") == Some(1)
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        Some(lines.find_map(|line| line.strip_prefix(name))?.trim())
    }

    fn first(&self, name: &str) -> Option<i32> {
        let mut words = self.field(name)?.split_ascii_whitespace();
        words.next()?.parse().ok()
    }

    fn numbers<T: FromStr>(&self, name: &str) -> Option<Vec<T>> {
        let words = self.field(name)?.split_ascii_whitespace();
        words.map(|word| word.parse().ok()).collect()
    }

    fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    fn ids(&self, name: &str) -> Option<Ids> {
        match self.numbers::<u32>(name)?[..] {
            [real, effective, _saved, file_system] => Some(Ids {
                real,
                effective,
                file_system,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_status() {
        let status = Status::parse(
            "Name:\tcat\nTgid:\t12\nPPid:\t3\nTracerPid:\t0\nUid:\t0\t1\t2\t1000\n\
             Gid:\t0\t0\t0\t100\nGroups:\t4 24 \nNSpid:\t12\t5\t1\nSigIgn:\t0000000000000002\n\
             CapEff:\t000001ffffffffff\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
        );
        assert_eq!((status.pid(), status.parent()), (Some(12), Some(3)));
        assert_eq!((status.tracer(), status.inner_pid()), (Some(0), Some(1)));
        let users = status.users().unwrap();
        assert_eq!(
            (users.real, users.effective, users.file_system),
            (0, 1, 1000)
        );
        assert_eq!(status.groups().unwrap().file_system, 100);
        assert_eq!(status.supplementary_groups(), Some(vec![4, 24]));
        assert_eq!(status.capabilities(), Some(0x1ff_ffff_ffff));
        assert!(status.ignores(2) && !status.ignores(1));
        assert!(!status.is_killed());
        assert!(Status::parse("SigPnd:\t0000000000000100\n").is_killed());
        assert!(!Status::parse("SigPnd:\t0000000000004000\n").is_killed());
        assert_eq!(status.seccomp(), Seccomp::Filter);
        assert!(status.gains_no_privileges());
    }

    #[test]
    fn lines_that_are_missing_or_damaged() {
        let status = Status::parse("Uid:\t0\nTgid:\tx\nCapEff:\tzz\n");
        assert_eq!((status.users(), status.pid()), (None, None));
        assert_eq!((status.capabilities(), status.inner_pid()), (None, None));
        assert!(!status.ignores(2) && !status.gains_no_privileges());
        assert_eq!(status.seccomp(), Seccomp::Off);
    }
}
