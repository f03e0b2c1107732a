//! The result of opening.

use prof_model::{Fallback, Tid};

use crate::attr::sample_period::SamplePeriod;
use crate::attr::setup::{Scope, Setup};
use crate::request::sizes::Sizes;

/// The result of opening.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The events, in the requested order. Never empty.
    pub events: Vec<OpenedEvent>,
    /// Threads that were found only after events had been opened on others of their process. An
    /// older thread may have created them, so that they are sampled through it as well.
    pub late: Vec<Tid>,
    /// The CPUs that events were opened on, in ascending order; none if it was not on CPUs.
    pub cpus: Vec<u32>,
    /// Sizes of rings and dumps.
    pub sizes: Sizes,
    /// The fallbacks.
    pub fallbacks: Vec<Fallback>,
}

impl Opened {
    /// The ids of all events, and which thread each was opened for (-1 for all that runs).
    pub fn ids(&self) -> impl Iterator<Item = &(u64, Tid)> + Clone {
        self.events.iter().flat_map(|event| &event.ids)
    }

    /// Whether an event is not inherited by new threads and children of the threads it was opened
    /// on.
    pub fn excludes_children(&self) -> bool {
        let mut setups = self.events.iter().map(|event| &event.setup);
        setups.any(|setup| setup.scope == Scope::Thread)
    }

    /// The periods, if prof chooses them.
    pub fn sample_period(&self) -> Option<SamplePeriod> {
        self.reported_event()
            .and_then(|event| event.setup.sample_period())
    }

    /// Whether [`Sampler::signal_each_overflow`](crate::Sampler::signal_each_overflow) can: stacks
    /// are copied, and no event wakes the reader with each record anyway. It cannot if the reader's
    /// own work for a signal may be sampled and so cause the next signal.
    pub fn can_signal_each_overflow(&self) -> bool {
        self.can_signal_watches() && !self.wakes_with_each_record()
    }

    /// Whether the signals of samples [can go](crate::Sampler::signal_watches) to threads that
    /// watch the rings, even if each record wakes the reader as well.
    pub fn can_signal_watches(&self) -> bool {
        let mut setups = self.events.iter().map(|event| &event.setup);
        let is_endless =
            |setup: &Setup| setup.scope == Scope::Cpu && setup.highest_rate().is_none();
        self.sizes.dump.is_some() && !setups.any(is_endless)
    }

    /// Whether blocked threads are read as soon as they block.
    pub(crate) fn wakes_with_each_record(&self) -> bool {
        self.events.iter().any(|event| event.setup.only_switches())
    }

    /// The event whose counts are reported as threads end.
    pub fn reported_event(&self) -> Option<&OpenedEvent> {
        self.events
            .iter()
            .find(|event| event.setup.reports.exit_counts)
    }

    /// Sets the watermark of the rings, now that the events are known.
    pub(crate) fn set_watermark(&mut self) {
        if self.wakes_with_each_record() {
            (self.events.iter_mut()).for_each(|event| event.setup.wakeup_bytes = 1);
        }
    }
}

/// One of the events that were opened.
#[derive(Clone, Debug)]
pub struct OpenedEvent {
    /// The request that the kernel accepted.
    pub setup: Setup,
    /// The index of the group's leader, if that is another event.
    pub leader: Option<usize>,
    /// The ids that its samples carry, and which thread each was opened for.
    pub ids: Vec<(u64, Tid)>,
}
