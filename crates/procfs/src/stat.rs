//! /proc/PID/stat.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A line of /proc/PID/stat, as far as it matters to a profiler: proc_pid_stat(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The name (comm), 15 bytes at most.
    pub name: Vec<u8>,
    /// Its state.
    pub state: State,
    /// Whether it is ending, and runs none of its own code any more.
    pub is_exiting: bool,
    /// Page faults so far: of all threads, if it is of a process.
    pub faults: u64,
    /// The size of the address space, in bytes.
    pub size: u64,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// The scheduling policy (sched.h): 1 is SCHED_FIFO.
    pub policy: u32,
}

/// The letter of a task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(u8);

impl State {
    /// Whether it runs, or waits for nothing but a CPU.
    pub fn is_runnable(self) -> bool {
        self.0 == b'R'
    }

    /// Whether it waits for something other than a CPU, or is stopped (SIGSTOP, a tracer).
    pub fn is_blocked(self) -> bool {
        matches!(self.0, b'S' | b'D' | b'T' | b't')
    }

    /// Whether it is stopped (SIGSTOP, a tracer).
    pub fn is_stopped(self) -> bool {
        matches!(self.0, b'T' | b't')
    }

    /// Whether it has ended, and its parent may not have waited for it.
    pub fn has_ended(self) -> bool {
        matches!(self.0, b'Z' | b'X' | b'x')
    }
}

impl Stat {
    /// The longest line, in bytes: 52 fields of at most 20 digits, and a name.
    pub(crate) const LONGEST: usize = 2048;

    /// PF_EXITING in the kernel's include/linux/sched.h.
    const EXITING: u64 = 4;
    /// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE and SCHED_EXT.
    const ORDINARY: [u32; 4] = [0, 3, 5, 7];

    /// Reads an open `stat` from its start; `None` if the task has ended.
    pub fn read_again(file: &File) -> Option<Self> {
        let mut buffer = [0; Self::LONGEST];
        let length = file.read_at(&mut buffer, 0).ok()?;
        Self::parse(buffer.get(..length)?)
    }

    /// Parses `123 (the name) R 1 ...`: the name may hold anything, parentheses too.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = line.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // State is the third field, flags the ninth, minor and major faults the tenth and the
        // twelfth, the size the 23rd, processor the 39th, policy the 41st.
        let state = State(*fields.next()?.as_bytes().first()?);
        let flags: u64 = fields.nth(5)?.parse().ok()?;
        let minor: u64 = fields.next()?.parse().ok()?;
        let major: u64 = fields.nth(1)?.parse().ok()?;
        let size = fields.nth(10)?.parse().ok()?;
        let cpu = fields.nth(15)?.parse().ok()?;
        let policy = fields.nth(1)?.parse().ok()?;
        Some(Self {
            name,
            state,
            is_exiting: flags & Self::EXITING != 0,
            faults: minor.saturating_add(major),
            size,
            cpu,
            policy,
        })
    }

    /// Whether real-time threads go ahead of it.
    pub fn has_ordinary_priority(&self) -> bool {
        Self::ORDINARY.contains(&self.policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    #[test]
    fn stat_lines() {
        let rest = (1..=35).map(|field| field.to_string()).collect::<Vec<_>>();
        let rest = format!("{} 6 37 1 39", rest.join(" "));
        let check = |line: &str, expected: Option<(&[u8], bool)>| {
            let stat = Stat::parse(line.as_bytes());
            let found = stat.as_ref();
            let found = found.map(|stat| (&*stat.name, stat.state.is_runnable()));
            assert_eq!(found, expected, "{line}");
            assert!(!stat.as_ref().is_some_and(Stat::has_ordinary_priority));
            // The first of these numbers is in the fourth field.
            let numbers = stat.map(|stat| (stat.faults, stat.size, stat.cpu, stat.policy));
            assert!(numbers.is_none_or(|numbers| numbers == (7 + 9, 20, 6, 1)));
        };
        let flags = |flags: &str| {
            let rest = rest.replacen(" 6 ", flags, 1);
            Stat::parse(format!("12 (sh) R {rest}").as_bytes())
                .unwrap()
                .is_exiting
        };
        assert!(flags(" 4194308 ") && !flags(" 4194304 "));
        check(&format!("12 (sh) R {rest}"), Some((b"sh", true)));
        check(&format!("12 (a) R (b) S {rest}"), Some((b"a) R (b", false)));
        check("12 (sh) R 1 2 3", None);
        check("12 sh", None);
        check(") 12 (", None);
        check("", None);
    }

    #[test]
    fn our_own() {
        let stat = Task::this_thread().stat().unwrap();
        assert!(stat.state.is_runnable() && !stat.state.has_ended() && !stat.name.is_empty());
        assert!(stat.has_ordinary_priority());
        let file = Task::this_process().open("stat").unwrap();
        assert!(Stat::read_again(&file).is_some());
    }
}
