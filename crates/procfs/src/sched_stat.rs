//! /proc/PID/schedstat.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// How a thread has shared the CPUs with others so far; all 0 if the kernel does not count
/// (CONFIG_SCHED_INFO). Source: Documentation/scheduler/sched-stats.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Nanoseconds on CPUs: exact for a thread that does not run.
    pub cpu_time: u64,
    /// Nanoseconds for which it was ready to run and waited for a CPU.
    pub run_delay: u64,
    /// How often it got a CPU.
    pub timeslices: u64,
}

impl SchedStat {
    /// The name of the file.
    pub const FILE: &str = "schedstat";
    /// The longest line, in bytes: three numbers of at most 20 digits.
    const LONGEST: usize = 63;

    /// Reads an open `schedstat` from its start; `None` if the thread has ended.
    pub fn read_again(file: &File) -> Option<Self> {
        let mut buffer = [0; Self::LONGEST];
        let length = file.read_at(&mut buffer, 0).ok()?;
        Self::parse(buffer.get(..length)?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let mut numbers = line.split_ascii_whitespace().map(|it| it.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self {
            cpu_time: next()?,
            run_delay: next()?,
            timeslices: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    #[test]
    fn a_line_has_three_numbers() {
        let expected = SchedStat {
            cpu_time: 148_136,
            run_delay: 11_432_910,
            timeslices: 2,
        };
        assert_eq!(SchedStat::parse(b"148136 11432910 2\n"), Some(expected));
        assert_eq!(SchedStat::parse(b"148136 11432910\n"), None);
        assert_eq!(SchedStat::parse(b"148136 x 2\n"), None);
        assert_eq!(SchedStat::parse(b""), None);
    }

    /// It has a CPU once more after each wait for something else.
    #[test]
    fn turns_of_this_thread_are_counted() {
        let file = Task::this_thread().open(SchedStat::FILE).unwrap();
        let turns = || SchedStat::read_again(&file).unwrap().timeslices;
        let before = turns();
        while turns() == before {
            std::thread::spawn(std::thread::yield_now).join().unwrap();
        }
    }
}
