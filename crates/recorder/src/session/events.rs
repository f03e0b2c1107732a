//! The sampled events: how their records are parsed, and what becomes of their samples.

use prof_events::{AllocationWeight, Opened, OpenedEvent, Stacks, Weight};
use prof_model::{Pid, StackEnd};
use prof_perfdata::{Attr, Error, EventDescription, RecordFormat, Sample, SampleType};

use crate::session::allocation::{self, EveryBytes};
use crate::session::next_periods::NextPeriods;

/// The events of a session.
pub(crate) struct SessionEvents {
    /// The format of the records in the rings.
    pub(super) format: RecordFormat,
    events: Vec<SessionEvent>,
    every_bytes: EveryBytes,
}

/// One of the sampled events.
pub(crate) struct SessionEvent {
    /// Its attributes in the file.
    pub(super) attr: Attr,
    /// What to do with its stacks.
    pub(super) stacks: StackWork,
    /// How its samples are weighed.
    pub(super) weight: Weight,
    /// What its samples stand for, if they say the period that begins with them.
    periods: Option<NextPeriods>,
}

/// What to do with the stacks of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackWork {
    /// Unwind them.
    Unwind,
    /// Store them unchanged, and count them as ended for this reason.
    Keep(StackEnd),
}

impl SessionEvents {
    /// The events that were `opened`, with their descriptions for the file. `rings` describes them
    /// as their rings have them.
    pub(crate) fn new(
        opened: &Opened,
        rings: &[EventDescription],
        unwinds: bool,
    ) -> Result<(Self, Vec<EventDescription>), Error> {
        let mut events = Vec::new();
        let mut described = Vec::new();
        for (event, ring) in opened.events.iter().zip(rings) {
            let stacks = StackWork::of(event, unwinds);
            let weight = event.setup.weight;
            events.push(SessionEvent {
                attr: describe(&mut described, ring, stacks, weight),
                stacks,
                weight,
                periods: event.setup.says_next_period().then(Default::default),
            });
        }
        let events = Self {
            format: RecordFormat::new(rings)?,
            events,
            every_bytes: EveryBytes::default(),
        };
        Ok((events, described))
    }

    pub(super) fn get(&self, index: usize) -> Option<&SessionEvent> {
        self.events.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut SessionEvent> {
        self.events.get_mut(index)
    }

    /// The attributes of an event in the file.
    pub(super) fn attr(&self, index: usize) -> Option<&Attr> {
        self.get(index).map(|event| &event.attr)
    }

    /// The attributes for records that are no samples.
    pub(super) fn first_attr(&self) -> Option<&Attr> {
        self.attr(0)
    }

    /// The attributes of samples of blocked threads, if prof takes these itself.
    pub(super) fn blocked_threads(&self) -> Option<&Attr> {
        let blocked = |event: &&SessionEvent| event.weight == Weight::Blocked;
        self.events.iter().find(blocked).map(|event| &event.attr)
    }

    /// The weight of a sample that stands for `period`; `None` if it does not count.
    pub(super) fn weight(&mut self, sample: &Sample<'_>, period: u64) -> Option<u64> {
        let Weight::Allocation { size, by } = self.get(sample.event)?.weight else {
            return Some(period);
        };
        let bytes = allocation::bytes(size, &sample.user_registers()?)?;
        match by {
            AllocationWeight::Calls => Some(sample.period),
            AllocationWeight::Bytes { every } => {
                let bytes = bytes.saturating_mul(sample.period);
                self.every_bytes.weight(bytes, every)
            }
        }
    }
}

impl SessionEvent {
    /// Whether a sample is none of what the event is for: an idle CPU does not wait. If everything
    /// is sampled, each sample of our own work would cause others, and we wait for nothing but
    /// samples.
    pub(super) fn ignores(&self, sample: &Sample<'_>, own_pid: Pid) -> bool {
        let is_own = sample.pid == own_pid;
        match self.weight {
            Weight::OffCpu => sample.tid == 0 || is_own,
            Weight::Allocation { .. } => is_own,
            Weight::Period | Weight::Blocked => false,
        }
    }

    /// How many events a sample stands for.
    pub(super) fn period(&mut self, sample: &Sample<'_>) -> u64 {
        match &mut self.periods {
            Some(periods) => periods.ended(sample.stream_id, sample.period),
            None => sample.period,
        }
    }

    /// Whether its samples differ in weight.
    pub(super) fn is_unequal(&self) -> bool {
        self.periods.is_some() || matches!(self.weight, Weight::Allocation { .. })
    }
}

impl StackWork {
    fn of(event: &OpenedEvent, unwinds: bool) -> Self {
        match event.setup.stacks {
            Stacks::Dump(_) if unwinds => Self::Unwind,
            Stacks::FramePointers | Stacks::LastBranches { .. } => {
                Self::Keep(StackEnd::FramePointersEnded)
            }
            Stacks::Dump(_) | Stacks::None => Self::Keep(StackEnd::NotRecorded),
        }
    }
}

/// Adds the description of an event in the file, unless it has one already: to readers, all
/// functions that allocate are one event, and all waits are one. Returns its attributes.
fn describe(
    described: &mut Vec<EventDescription>,
    ring: &EventDescription,
    stacks: StackWork,
    weight: Weight,
) -> Attr {
    let is_joined = matches!(weight, Weight::Allocation { .. } | Weight::Blocked);
    let same = |other: &&mut EventDescription| is_joined && other.name == ring.name;
    if let Some(other) = described.iter_mut().find(same) {
        other.ids.extend(&ring.ids);
        return other.attr.clone();
    }
    let attr = match stacks {
        StackWork::Unwind => unwound(&ring.attr, weight),
        StackWork::Keep(_) => ring.attr.clone(),
    };
    described.push(EventDescription {
        attr: attr.clone(),
        ..ring.clone()
    });
    attr
}

/// The attribute of samples that this crate has unwound and weighed.
fn unwound(ring: &Attr, weight: Weight) -> Attr {
    let mut attr = ring.unwound();
    attr.sample_type = attr.sample_type & !SampleType::REGS_INTR;
    attr.sample_regs_intr = 0;
    if weight != Weight::Period {
        attr.sample_type = attr.sample_type | SampleType::PERIOD;
    }
    attr
}
