//! The CPU on which the reader waits for deep stacks.
//!
//! ```text
//!   reader on another CPU:   sample ── wake it there, 25 µs ──> reads the stack
//!                              └ target runs on: some of the stack is another one by then
//!   reader on the same CPU:  sample ── the reader's turn ──> reads the stack ── target runs on
//! ```
//! A woken thread with a higher priority preempts the one that was interrupted, so that nothing
//! changes until it has read. But the kernel prefers to wake it on an idle CPU. So while stacks are
//! deeper than their dumps, the reader stays on their CPU: the time that it takes is then the
//! target's, which is why it does so only that long.

use std::time::{Duration, Instant};

use prof_events::AllowedCpus;

/// Keeps the calling thread on the CPU of deep stacks.
#[derive(Debug)]
pub(crate) struct ReaderAffinity {
    /// The CPUs on which it may run.
    home: Option<AllowedCpus>,
    follows: CpuChoice,
    last_deep: Instant,
}

/// Decides which CPU to stay on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuChoice {
    at: Option<u32>,
    /// The CPU of the last deep stack. With several such threads it changes all the time, and each
    /// move costs more than it gains.
    last: Option<u32>,
    wanted: Option<u32>,
}

impl ReaderAffinity {
    /// How long to stay without a deep stack.
    const TIMEOUT: Duration = Duration::from_millis(100);

    pub(crate) fn new() -> Self {
        Self {
            home: AllowedCpus::of_this_thread(),
            follows: CpuChoice::default(),
            last_deep: Instant::now(),
        }
    }

    /// The CPUs on which threads of this process may run, wherever the calling one is kept.
    pub(crate) fn home(&self) -> Option<AllowedCpus> {
        self.home
    }

    /// A deep stack came from this CPU.
    pub(crate) fn deep_stack(&mut self, cpu: u32) {
        self.last_deep = Instant::now();
        self.follows.see(cpu);
    }

    /// Moves to the right CPU, between two passes over the rings.
    pub(crate) fn apply(&mut self) {
        if self.follows.at.is_some() && self.last_deep.elapsed() > Self::TIMEOUT {
            self.follows = CpuChoice::default();
            self.home.map(|home| home.run_there());
        }
        if let Some(cpu) = self.follows.wanted.take()
            && let Some(there) = self.home.and_then(|home| home.only(cpu))
            && there.run_there()
        {
            self.follows.at = Some(cpu);
        }
    }
}

impl CpuChoice {
    fn see(&mut self, cpu: u32) {
        let again = self.last == Some(cpu);
        self.last = Some(cpu);
        self.wanted = (again && self.at != Some(cpu)).then_some(cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stacks_in_a_row_call_the_reader() {
        let mut follows = CpuChoice::default();
        let mut check = |cpu, expected: Option<u32>| {
            follows.see(cpu);
            assert_eq!(follows.wanted, expected, "{follows:?}");
            follows.at = follows.wanted.take().or(follows.at);
        };
        check(1, None);
        check(1, Some(1));
        check(1, None);
        // Two alternating threads.
        for cpu in [0, 1, 0, 1, 0] {
            check(cpu, None);
        }
        check(0, Some(0));
        check(0, None);
    }

    #[test]
    fn the_reader_stays_while_stacks_are_deep() {
        let home = AllowedCpus::of_this_thread().expect("fewer than 1,025 CPUs");
        let mut affinity = ReaderAffinity::new();
        let cpus = || AllowedCpus::of_this_thread().map(|cpus| format!("{cpus:?}"));
        let all = cpus();
        let cpu = (0..1024).find(|&cpu| home.only(cpu).is_some());
        let cpu = cpu.expect("it runs somewhere");
        affinity.deep_stack(cpu);
        affinity.apply();
        assert_eq!(cpus(), all);
        affinity.deep_stack(cpu);
        affinity.apply();
        assert_eq!(cpus(), Some(format!("[{cpu}]")));
        let long_ago = Instant::now().checked_sub(ReaderAffinity::TIMEOUT * 2);
        affinity.last_deep = long_ago.expect("a clock that has run for a while");
        affinity.apply();
        assert_eq!(cpus(), all);
    }
}
