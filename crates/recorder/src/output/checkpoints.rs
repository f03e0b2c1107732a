//! When the file is made readable in case prof is killed: soon after the start, then once a second.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Checkpoints {
    last: Instant,
    interval: Duration,
}

impl Checkpoints {
    const FIRST: Duration = Duration::from_millis(50);
    const USUAL: Duration = Duration::from_secs(1);

    pub(crate) fn begin(now: Instant) -> Self {
        Self {
            last: now,
            interval: Self::FIRST,
        }
    }

    /// The time from the last checkpoint to the next.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn are_due(&self, now: Instant) -> bool {
        now.duration_since(self.last) >= self.interval
    }

    pub(crate) fn done(&mut self, now: Instant) {
        self.last = now;
        self.interval = (self.interval * 2).min(Self::USUAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_can_be_read_soon_and_then_each_second() {
        let begin = Instant::now();
        let mut checkpoints = Checkpoints::begin(begin);
        let mut done = Vec::new();
        for time in (0..4000).step_by(10) {
            let now = begin + Duration::from_millis(time);
            if checkpoints.are_due(now) {
                checkpoints.done(now);
                done.push(time);
            }
        }
        assert_eq!(done, [50, 150, 350, 750, 1550, 2550, 3550]);
    }
}
