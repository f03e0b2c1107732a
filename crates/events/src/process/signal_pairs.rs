//! Signals that come to a worker twice: directly and from its supervisor, because they were sent to
//! the process group of both.

use std::time::{Duration, Instant};

use prof_model::Pid;

/// One coming of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coming {
    pub(crate) signal: i32,
    /// Who sent it; 0: the kernel, as for keys of the terminal.
    pub(crate) sender: Pid,
    /// Whether the supervisor has passed it on.
    pub(crate) is_passed: bool,
}

/// The comings whose twins have not come.
#[derive(Debug, Default)]
pub(crate) struct SignalPairs {
    single: Vec<(Coming, Instant)>,
}

impl SignalPairs {
    /// How much later a twin may come.
    const LATER: Duration = Duration::from_millis(100);

    /// Whether it is the twin of one that has come.
    pub(crate) fn completes(&mut self, coming: Coming, now: Instant) -> bool {
        self.forget_old(now);
        let twin = Coming {
            is_passed: !coming.is_passed,
            ..coming
        };
        match self.single.iter().position(|&(known, _)| known == twin) {
            Some(at) => {
                self.single.remove(at);
                true
            }
            None => {
                self.single.push((coming, now));
                false
            }
        }
    }

    /// How long the supervisor may still pass on the twins of those that have come directly.
    pub(crate) fn awaits(&mut self, now: Instant) -> Option<Duration> {
        self.forget_old(now);
        let direct = self.single.iter().filter(|(it, _)| !it.is_passed);
        let left = direct.map(|&(_, came)| Self::LATER.saturating_sub(now.duration_since(came)));
        left.max()
    }

    fn forget_old(&mut self, now: Instant) {
        (self.single).retain(|&(_, came)| now.duration_since(came) < Self::LATER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_to_both_count_once() {
        let start = Instant::now();
        let mut pairs = SignalPairs::default();
        let mut counts = |signal, sender, is_passed, later| {
            let coming = Coming {
                signal,
                sender,
                is_passed,
            };
            !pairs.completes(coming, start + Duration::from_millis(later))
        };
        assert!(counts(2, 0, false, 0));
        assert!(!counts(2, 0, true, 1), "passed on");
        assert!(counts(2, 0, true, 2), "again");
        assert!(!counts(2, 0, false, 3));
        assert!(counts(15, 7, true, 4));
        assert!(counts(15, 8, false, 5), "of another sender");
        assert!(counts(1, 7, false, 6), "another signal");
        assert!(counts(15, 7, false, 200), "too late for a twin");
    }

    #[test]
    fn twins_are_awaited_from_the_supervisor() {
        let now = Instant::now();
        let mut pairs = SignalPairs::default();
        let mut coming = Coming {
            signal: 2,
            sender: 0,
            is_passed: true,
        };
        assert!(!pairs.completes(coming, now));
        assert_eq!(pairs.awaits(now), None);
        coming.signal = 15;
        coming.is_passed = false;
        assert!(!pairs.completes(coming, now));
        assert_eq!(pairs.awaits(now), Some(SignalPairs::LATER));
        assert_eq!(pairs.awaits(now + SignalPairs::LATER), None);
    }
}
