//! One event at all places of its target, shared by a counter and its group.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prof_events::counting::{AttrOptions, GroupCount, RawCount, RawCounter};
use prof_events::parsing::EventSpec;

use crate::count::Count;
use crate::error::ReadError;
use crate::place::{PlaceName, Places};

/// Identifies a counter in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(u64);

impl CounterId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One event at all places of its target.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: CounterId,
    pub(crate) spec: EventSpec,
    pub(crate) options: AttrOptions,
    pub(crate) places: Arc<Places>,
    /// One event for each place; `None` if the thread ended before it could be opened.
    pub(crate) events: Vec<Option<RawCounter>>,
    /// The counts at each place when the counter was last set to zero.
    ///
    /// The kernel's own reset keeps the times, and the counts of children that have ended; so the
    /// values at the reset are stored here and subtracted.
    baselines: Mutex<Vec<Baseline>>,
}

/// The state of one event at one place at some moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) value: u64,
    /// The event's own times.
    pub(crate) own: Times,
    /// The times of its group's leader, which a group read returns.
    pub(crate) group: Times,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) enabled: u64,
    pub(crate) running: u64,
}

impl Times {
    pub(crate) fn of(count: RawCount) -> Self {
        Self {
            enabled: count.enabled,
            running: count.running,
        }
    }
}

impl Member {
    pub(crate) fn new(
        spec: EventSpec,
        options: AttrOptions,
        places: Arc<Places>,
        events: Vec<Option<RawCounter>>,
    ) -> Self {
        let baselines = Mutex::new(vec![Baseline::default(); events.len()]);
        Self {
            id: CounterId::next(),
            spec,
            options,
            places,
            events,
            baselines,
        }
    }

    pub(crate) fn baselines(&self) -> MutexGuard<'_, Vec<Baseline>> {
        // Plain numbers are valid even after a panic.
        self.baselines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The count since the last reset, with each event read alone.
    pub(crate) fn read(&self) -> Result<Count, ReadError> {
        let baselines = self.baselines();
        let mut sum = Count::default();
        for (event, baseline) in self.events.iter().zip(&*baselines) {
            if let Some(event) = event {
                sum = sum.plus(since(read(event)?, baseline));
            }
        }
        Ok(sum)
    }

    /// As [`read`](Self::read), for each place.
    pub(crate) fn read_places(&self) -> Result<Vec<(PlaceName, Count)>, ReadError> {
        let baselines = self.baselines();
        let places = self.places.sites.iter().zip(&self.events).zip(&*baselines);
        let opened = places
            .filter_map(|((site, event), baseline)| Some((site.name, event.as_ref()?, baseline)));
        opened
            .map(|(name, event, baseline)| Ok((name, since(read(event)?, baseline))))
            .collect()
    }

    /// Sets the count to zero.
    pub(crate) fn reset(&self) -> Result<(), ReadError> {
        let mut baselines = self.baselines();
        for (event, baseline) in self.events.iter().zip(&mut *baselines) {
            let Some(event) = event else { continue };
            let count = read(event)?;
            // The group's times keep their distance from the event's own.
            let elapsed = Times {
                enabled: count.enabled.wrapping_sub(baseline.own.enabled),
                running: count.running.wrapping_sub(baseline.own.running),
            };
            *baseline = Baseline {
                value: count.value,
                own: Times::of(count),
                group: Times {
                    enabled: baseline.group.enabled.wrapping_add(elapsed.enabled),
                    running: baseline.group.running.wrapping_add(elapsed.running),
                },
            };
        }
        Ok(())
    }

    /// The count at one place since the last reset, from a read of the group.
    pub(crate) fn value(&self, place: usize, group: &GroupCount) -> Option<Count> {
        let value = self.value_in(place, group)?;
        let baselines = self.baselines();
        let baseline = baselines.get(place)?;
        Some(Count {
            value: value.wrapping_sub(baseline.value),
            enabled: group.enabled.wrapping_sub(baseline.group.enabled),
            running: group.running.wrapping_sub(baseline.group.running),
        })
    }

    /// Sets the count at one place to zero as of a read of the group.
    pub(crate) fn reset_in_group(&self, place: usize, group: &GroupCount) -> Result<(), ReadError> {
        let (Some(value), Some(Some(event))) =
            (self.value_in(place, group), self.events.get(place))
        else {
            return Ok(());
        };
        let own = Times::of(read(event)?);
        if let Some(baseline) = self.baselines().get_mut(place) {
            let group = Times {
                enabled: group.enabled,
                running: group.running,
            };
            *baseline = Baseline { value, own, group };
        }
        Ok(())
    }

    fn value_in(&self, place: usize, group: &GroupCount) -> Option<u64> {
        let id = self.events.get(place)?.as_ref()?.id();
        let (_, value) = group.values.iter().find(|(known, _)| *known == id)?;
        Some(*value)
    }

    /// The opened events.
    pub(crate) fn opened(&self) -> impl Iterator<Item = &RawCounter> {
        self.events.iter().flatten()
    }
}

/// Reads one event.
///
/// # Errors
///
/// Works also in the error state.
pub(crate) fn read(event: &RawCounter) -> Result<RawCount, ReadError> {
    event
        .read()
        .map_err(ReadError::System)?
        .ok_or(ReadError::NotScheduled)
}

pub(crate) fn since(count: RawCount, baseline: &Baseline) -> Count {
    Count {
        value: count.value.wrapping_sub(baseline.value),
        enabled: count.enabled.wrapping_sub(baseline.own.enabled),
        running: count.running.wrapping_sub(baseline.own.running),
    }
}
