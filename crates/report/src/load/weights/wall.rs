//! All of the time of threads in one view, where a recording has it in two events.

use prof_perfdata::EventDescription;

use crate::load::events::unit;
use crate::profile::{Event, Frame, Unit};

/// Time on and off the CPUs, which together are all of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) struct Wall {
    on: usize,
    off: usize,
    /// The number of the event that is both; the recording has events up to it.
    both: u16,
}

impl Wall {
    /// The view of a recording that has both a clock and the time off the CPUs.
    pub(in crate::load) fn of(events: &[EventDescription]) -> Option<Self> {
        let is_off = |event: &EventDescription| event.name.split(':').next() == Some("offcpu-time");
        let off = events.iter().position(is_off)?;
        let is_on = |event: &EventDescription| !is_off(event) && unit(event) == Unit::Nanoseconds;
        Some(Self {
            on: events.iter().position(is_on)?,
            off,
            both: u16::try_from(events.len()).ok()?,
        })
    }

    /// The event that is both.
    pub(in crate::load) fn event() -> Event {
        Event {
            unit: Unit::Nanoseconds,
            name: Event::WALL_CLOCK.into(),
        }
    }

    /// Where a sample of this event is in the view: the number of that view's event, and the
    /// frame at its root.
    pub(in crate::load) fn place(self, event: usize) -> Option<(u16, Frame)> {
        let root = match event {
            on if on == self.on => Frame::OnCpu,
            off if off == self.off => Frame::OffCpu,
            _ => return None,
        };
        Some((self.both, root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expected: [Option<(u16, Frame)>; 2]) {
        let events: Vec<_> = names
            .iter()
            .map(|&name| EventDescription {
                name: name.into(),
                ..EventDescription::default()
            })
            .collect();
        let wall = Wall::of(&events);
        let places = [0, 1].map(|event| wall.and_then(|wall| wall.place(event)));
        assert_eq!(places, expected, "{names:?}");
    }

    #[test]
    fn a_clock_and_waits_are_all_of_the_time() {
        let both = [Some((2, Frame::OnCpu)), Some((2, Frame::OffCpu))];
        check(&["cpu-clock:u", "offcpu-time"], both);
        let [on, off] = both;
        check(&["offcpu-time", "task-clock"], [off, on]);
        check(&["cycles", "offcpu-time"], [None, None]);
        check(&["cpu-clock", "task-clock"], [None, None]);
        check(&["offcpu-time"], [None, None]);
    }
}
