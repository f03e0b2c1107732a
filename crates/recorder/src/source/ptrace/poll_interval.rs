//! The times of passes over the threads.

use std::time::{Duration, Instant};

/// Passes come at a rate, on average; with gaps of random length, so that they do not fall into
/// step with programs that act at intervals; and take at most half of the time.
#[derive(Debug)]
pub(super) struct PollInterval {
    period: Duration,
    next: Instant,
    /// State of a xorshift generator: anything but 0.
    random: u64,
}

impl PollInterval {
    pub(super) fn new(hertz: u64, now: Instant) -> Self {
        Self {
            period: Duration::from_nanos(1_000_000_000 / hertz.max(1)),
            next: now,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// The time until the next pass.
    pub(super) fn rest(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// A pass took from `begin` to `end`: sets the next one.
    pub(super) fn polled(&mut self, begin: Instant, end: Instant) {
        let due = (self.next + self.gap()).max(begin);
        let spent = end.saturating_duration_since(begin);
        self.next = due.max(end + spent);
    }

    /// Half to one and a half periods.
    fn gap(&mut self) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let thousandths = 500 + (self.random % 1001) as u32;
        self.period * thousandths / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_looks_come_at_the_rate() {
        let begin = Instant::now();
        let mut poll_interval = PollInterval::new(1000, begin);
        let (mut now, mut gaps) = (begin, Vec::new());
        for _ in 0..10_000 {
            poll_interval.polled(now, now);
            gaps.push(poll_interval.rest(now));
            now += poll_interval.rest(now);
        }
        let mean = (now - begin) / 10_000;
        assert!((990..1010).contains(&mean.as_micros()), "{mean:?}");
        let (min, max) = (gaps.iter().min(), gaps.iter().max());
        assert!(min < Some(&Duration::from_micros(520)), "{min:?}");
        assert!(max > Some(&Duration::from_micros(1480)), "{max:?}");
    }

    #[test]
    fn slow_looks_take_half_of_the_time() {
        let begin = Instant::now();
        let mut poll_interval = PollInterval::new(1000, begin);
        let end = begin + Duration::from_millis(10);
        poll_interval.polled(begin, end);
        assert_eq!(poll_interval.rest(end), Duration::from_millis(10));
    }
}
