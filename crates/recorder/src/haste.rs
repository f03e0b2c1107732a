//! How soon the reader must look at a sample.
//!
//! What lies beyond the kernel's copy of a stack must be read before the program changes it, so the
//! kernel wakes the reader at each sample. That costs the program more than the sample itself, and
//! most programs' stacks are never that deep. So the reader, once awake, takes a nap in which more
//! samples come together, as long as no stack needed it sooner for a while.

use std::time::{Duration, Instant};

use prof_events::Opened;
use prof_model::StackEnd;
use prof_perfdata::StackNote;

/// Whether there is time for a nap.
#[derive(Debug)]
pub(crate) struct Haste {
    /// `None`: samples may come faster than the rings could hold.
    nap: Option<Duration>,
    until: Instant,
    /// How long to be in haste after a stack that needed it.
    lasts: Duration,
}

impl Haste {
    /// Short beside what changes while nobody looks: names, mappings, processes.
    const LONGEST_NAP: Duration = Duration::from_millis(5);
    const AT_FIRST: Duration = Duration::from_secs(1);
    /// Doubled each time that it was too short, up to this, so that stacks which are deep now and
    /// then are not missed each time.
    const LONGEST: Duration = Duration::from_secs(64);

    /// In haste for a while from now on.
    pub(crate) fn new(opened: &Opened, now: Instant) -> Self {
        Self {
            nap: nap(opened),
            until: now + Self::AT_FIRST,
            lasts: Self::AT_FIRST,
        }
    }

    /// Something had to be read from the live target.
    pub(crate) fn needed(&mut self, now: Instant) {
        if now > self.until {
            self.lasts = (self.lasts * 2).min(Self::LONGEST);
        }
        self.until = now + self.lasts;
    }

    /// How long to let samples come together.
    pub(crate) fn nap(&self, now: Instant) -> Option<Duration> {
        self.nap.filter(|_| now > self.until)
    }
}

/// In which a ring fills by an eighth at most, if it is known how fast all events can come.
fn nap(opened: &Opened) -> Option<Duration> {
    let rates = opened.events.iter().map(|event| event.setup.highest_rate());
    let per_second = rates.sum::<Option<u64>>()?;
    let dump = u64::from(opened.sizes.dump?);
    let eighth = (opened.sizes.ring / 8).checked_div(dump * per_second.max(1) / 1000)?;
    Some(Duration::from_millis(eighth).min(Haste::LONGEST_NAP)).filter(|nap| !nap.is_zero())
}

/// Whether what the kernel copied was not enough, as far as that tells of stacks to come.
pub(crate) fn is_needed_by(note: StackNote) -> bool {
    match note.end {
        StackEnd::TruncatedDump | StackEnd::UnreadableMemory | StackEnd::Stale => true,
        // Of the copy of another moment, some is always missing.
        StackEnd::StaleRegisters => false,
        _ => note.read_back > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haste_ends_and_lasts_longer_each_time() {
        let begin = Instant::now();
        let after = |seconds: f64| begin + Duration::from_secs_f64(seconds);
        let nap = Duration::from_millis(5);
        let mut haste = Haste {
            nap: Some(nap),
            until: begin + Haste::AT_FIRST,
            lasts: Haste::AT_FIRST,
        };
        assert_eq!(haste.nap(after(0.9)), None);
        assert_eq!(haste.nap(after(1.1)), Some(nap));
        haste.needed(after(1.2));
        assert_eq!(haste.nap(after(3.1)), None);
        haste.needed(after(3.1));
        assert_eq!(haste.nap(after(5.0)), None, "not too short: no longer");
        assert_eq!(haste.nap(after(5.2)), Some(nap));
        (0..10).for_each(|_| haste.needed(haste.until + nap));
        assert_eq!(haste.lasts, Haste::LONGEST);
    }
}
