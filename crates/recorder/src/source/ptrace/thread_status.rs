//! What /proc tells of a thread, cheaply enough for every sample.

use std::fs;
use std::io::Read;

use prof_model::{Pid, Tid};

/// A line of /proc/PID/task/TID/stat, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadStatus {
    /// 15 bytes at most.
    pub(super) name: Vec<u8>,
    /// Whether it runs, or waits for nothing but a CPU.
    pub(super) runs: bool,
    /// The CPU that it ran on last.
    pub(super) cpu: u32,
}

impl ThreadStatus {
    /// `None` when the thread has ended.
    pub(super) fn read(pid: Pid, tid: Tid) -> Option<Self> {
        let mut buffer = [0; 1024];
        let path = format!("/proc/{pid}/task/{tid}/stat");
        let length = fs::File::open(path).ok()?.read(&mut buffer).ok()?;
        Self::parse(buffer.get(..length)?)
    }

    /// `123 (the name) R 1 ...`: the name may hold anything, parentheses too.
    fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = line.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // proc(5): state is the third field, processor the 39th.
        let runs = fields.next()? == "R";
        let cpu = fields.nth(35)?.parse().ok()?;
        Some(Self { name, runs, cpu })
    }
}

/// Nanoseconds that a thread was on a CPU: exact for one that is stopped.
pub(super) fn cpu_time(pid: Pid, tid: Tid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Pages of a process's address space: changes with nearly every mapping.
pub(super) fn pages(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The process of a thread, the process that made it, and who traces it (0 for nobody).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskIds {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    pub(super) tracer: Pid,
    pub(super) user: u32,
}

impl TaskIds {
    pub(super) fn read(tid: Tid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{tid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()
        };
        Some(Self {
            pid: field("Tgid:")?.parse().ok()?,
            parent: field("PPid:")?.parse().ok()?,
            tracer: field("TracerPid:")?.parse().ok()?,
            user: field("Uid:")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 6 37";
        let check = |line: &str, expected: Option<(&[u8], bool, u32)>| {
            let status = ThreadStatus::parse(line.as_bytes());
            let found = status
                .as_ref()
                .map(|status| (&*status.name, status.runs, status.cpu));
            assert_eq!(found, expected, "{line}");
        };
        check(&format!("12 (sh) R {rest}"), Some((b"sh", true, 6)));
        check(
            &format!("12 (a) R (b) S {rest}"),
            Some((b"a) R (b", false, 6)),
        );
        check("12 (sh) R 1 2 3", None);
        check("12 sh", None);
        check(") 12 (", None);
        check("", None);
    }

    #[test]
    fn we_ourselves() {
        let pid = std::process::id() as Pid;
        let status = ThreadStatus::read(pid, pid).expect("we are there");
        assert!(!status.name.is_empty());
        assert!(cpu_time(pid, pid).is_some_and(|time| time > 0));
        assert!(pages(pid).is_some_and(|pages| pages > 0));
        let family = TaskIds::read(pid).expect("we are there");
        assert_eq!((family.pid, family.tracer), (pid, 0));
        assert!(ThreadStatus::read(pid, i32::MAX).is_none());
    }
}
