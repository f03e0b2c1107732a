//! Signals that come to a worker twice: directly and from its supervisor, because they were sent to
//! the process group of both.

use std::time::{Duration, Instant};

use prof_model::Pid;

/// One arrival of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) signal: i32,
    /// Who sent it; 0: the kernel, as for keys of the terminal.
    pub(crate) sender: Pid,
    /// Whether the supervisor has passed it on.
    pub(crate) is_passed: bool,
}

/// The arrivals whose duplicates have not come.
#[derive(Debug, Default)]
pub(crate) struct DuplicateSignals {
    single: Vec<(Arrival, Instant)>,
}

impl DuplicateSignals {
    /// How much later a duplicate may come.
    const LATER: Duration = Duration::from_millis(100);

    /// Whether it is the duplicate of one that has come.
    pub(crate) fn completes(&mut self, arrival: Arrival, now: Instant) -> bool {
        self.forget_old(now);
        let duplicate = Arrival {
            is_passed: !arrival.is_passed,
            ..arrival
        };
        match self
            .single
            .iter()
            .position(|&(known, _)| known == duplicate)
        {
            Some(at) => {
                self.single.remove(at);
                true
            }
            None => {
                self.single.push((arrival, now));
                false
            }
        }
    }

    /// How long the supervisor may still pass on the duplicates of those that have come directly.
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
        let mut pairs = DuplicateSignals::default();
        let mut counts = |signal, sender, is_passed, later| {
            let arrival = Arrival {
                signal,
                sender,
                is_passed,
            };
            !pairs.completes(arrival, start + Duration::from_millis(later))
        };
        assert!(counts(2, 0, false, 0));
        assert!(!counts(2, 0, true, 1), "passed on");
        assert!(counts(2, 0, true, 2), "again");
        assert!(!counts(2, 0, false, 3));
        assert!(counts(15, 7, true, 4));
        assert!(counts(15, 8, false, 5), "of another sender");
        assert!(counts(1, 7, false, 6), "another signal");
        assert!(counts(15, 7, false, 200), "too late for a duplicate");
    }

    #[test]
    fn twins_are_awaited_from_the_supervisor() {
        let now = Instant::now();
        let mut pairs = DuplicateSignals::default();
        let mut arrival = Arrival {
            signal: 2,
            sender: 0,
            is_passed: true,
        };
        assert!(!pairs.completes(arrival, now));
        assert_eq!(pairs.awaits(now), None);
        arrival.signal = 15;
        arrival.is_passed = false;
        assert!(!pairs.completes(arrival, now));
        assert_eq!(pairs.awaits(now), Some(DuplicateSignals::LATER));
        assert_eq!(pairs.awaits(now + DuplicateSignals::LATER), None);
    }
}
