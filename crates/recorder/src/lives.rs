//! Short lives: noticed as they end, and sampled at random points from then on.
//!
//! Threads shorter than a sampling period would never be sampled, or all at the same point of
//! their lives. As each thread ends, the kernel says what its event counted (a READ record), and
//! through which of our events it had inherited its own. While many short ones end, these events
//! are given a new period again and again, for those who will inherit it next ([`Pace`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use prof_events::Pace;

/// Sees short threads end, and changes periods.
#[derive(Debug)]
pub(crate) struct Lives {
    pace: Pace,
    /// The events that threads inherit from, by their ids.
    families: HashMap<u64, Family>,
    /// Short threads that have ended lately.
    recent: u32,
    since: Instant,
    begin: Instant,
    /// Truly irregular: numbers that are only spread evenly fall into step with programs whose
    /// threads live about as long as the time from one draw to the next.
    random: fastrand::Rng,
}

/// The event that threads inherit from.
#[derive(Debug)]
struct Family {
    /// When a short one of them ended last.
    last: Instant,
    /// Whether its period is not the usual one.
    varied: bool,
}

impl Lives {
    /// Shorter than so many periods is short: these have few samples, or none.
    const SHORT: u64 = 4;
    /// As many as this are looked at together.
    const MANY: u32 = 8;
    /// For so long after short threads have ended, more are expected.
    const MEMORY: Duration = Duration::from_secs(1);
    /// How soon the rings are looked at again for threads that have ended: each period should be
    /// for few threads.
    const SOON: Duration = Duration::from_millis(1);
    /// The same as long as little is known of the target.
    const AT_FIRST: Duration = Duration::from_millis(10);

    pub(crate) fn new(pace: Pace) -> Self {
        let now = Instant::now();
        Self {
            pace,
            families: HashMap::new(),
            recent: 0,
            since: now,
            begin: now,
            random: fastrand::Rng::new(),
        }
    }

    /// A record, which may tell of a thread's end.
    pub(crate) fn notice(&mut self, record: &[u8]) {
        let Some((count, id)) = read(record) else {
            return;
        };
        if count == 0 || count >= self.pace.period.saturating_mul(Self::SHORT) {
            return;
        }
        let now = Instant::now();
        if now.duration_since(self.since) > Self::MEMORY {
            (self.recent, self.since) = (0, now);
        }
        self.recent = self.recent.saturating_add(1);
        let family = self.families.entry(id).or_insert(Family {
            last: now,
            varied: false,
        });
        family.last = now;
    }

    /// Gives the events whose threads are short a new period, and the others their usual one.
    pub(crate) fn vary(&mut self, mut set_period: impl FnMut(u64, u64)) {
        if self.families.is_empty() {
            return;
        }
        let now = Instant::now();
        let (pace, many) = (self.pace, self.recent >= Self::MANY);
        let random = &mut self.random;
        self.families.retain(|&id, family| {
            let recent = now.duration_since(family.last) < Self::MEMORY;
            if recent && many {
                family.varied = true;
                set_period(id, pace.draw(random.f64()));
            } else if !recent && family.varied {
                set_period(id, pace.period);
            }
            recent
        });
    }

    /// How soon to look again; `None` if there is no hurry.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.families.values().any(|family| family.varied) {
            return Some(Self::SOON);
        }
        let unknown = !self.families.is_empty() || self.begin.elapsed() < Self::MEMORY;
        unknown.then_some(Self::AT_FIRST)
    }
}

/// The count and the event's id in a READ record: header, pid, tid, count, id ...
fn read(record: &[u8]) -> Option<(u64, u64)> {
    const READ: u32 = 8;
    if crate::layout::kind(record) != Some(READ) {
        return None;
    }
    let word = |at: usize| {
        let bytes = record.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    Some((word(16)?, word(24)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_taken_apart() {
        let mut record = vec![0_u8; 48];
        record[..4].copy_from_slice(&8_u32.to_ne_bytes());
        record[16..24].copy_from_slice(&77_u64.to_ne_bytes());
        record[24..32].copy_from_slice(&5_u64.to_ne_bytes());
        assert_eq!(read(&record), Some((77, 5)));
        assert_eq!(read(&record[..31]), None);
        record[0] = 9;
        assert_eq!(read(&record), None);
    }
}
