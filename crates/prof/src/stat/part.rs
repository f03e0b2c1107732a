//! The counters of one group of events on one target.

use prof_counters::{
    Count, Counter, EventGroup, Group, OpenError, Options, PlaceName, ReadError, Snapshot, Target,
};

use super::row::Counts;

/// The counters of one group of events on one target.
pub(super) enum Part {
    Alone(Counter),
    Together {
        group: Group,
        counters: Vec<Counter>,
    },
    /// Counts from another source.
    Elsewhere,
}

/// A place, the index of a row there, and its count.
pub(super) type Cell = (PlaceName, usize, Count);

impl Part {
    /// Opens a group of events, or a single event.
    pub(super) fn open(
        events: &EventGroup,
        target: &Target,
        options: Options,
    ) -> Result<Self, OpenError> {
        if let ([event], false) = (&events.events[..], events.braces) {
            return Ok(Part::Alone(Counter::with_options(
                event,
                target.clone(),
                options,
            )?));
        }
        let leader = events.events.first().map(|event| event.modifiers);
        let options = Options {
            pinned: leader.is_some_and(|modifiers| modifiers.pinned),
            exclusive: leader.is_some_and(|modifiers| modifiers.exclusive),
            ..options
        };
        let mut group = Group::with_options(target.clone(), options)?;
        let counters = events
            .events
            .iter()
            .map(|event| group.add(event))
            .collect::<Result<_, _>>()?;
        Ok(Part::Together { group, counters })
    }

    /// The count of each of its rows.
    pub(super) fn read(&mut self) -> Result<Counts, ReadError> {
        let members = self.members();
        let read = match self {
            Self::Alone(counter) => counter.read_final().map(|count| vec![Some(count)]),
            Self::Together { group, counters } => {
                let snapshot = group.read_final();
                snapshot.map(|snapshot| {
                    counters
                        .iter()
                        .map(|counter| snapshot.get(counter))
                        .collect()
                })
            }
            Self::Elsewhere => Ok(vec![None]),
        };
        match read {
            Err(ReadError::NotScheduled) => Ok(vec![None; members]),
            read => read,
        }
    }

    /// The number of its rows, and the count of each row, by index, at each place.
    pub(super) fn read_places(&mut self) -> Result<(usize, Vec<Cell>), ReadError> {
        let members = self.members();
        let read = match self {
            Self::Alone(counter) => {
                let places = counter.read_places();
                places.map(|places| {
                    places
                        .into_iter()
                        .map(|(place, count)| (place, 0, count))
                        .collect()
                })
            }
            Self::Together { group, counters } => group.read_places().map(|places| {
                let each = |(place, snapshot): &(PlaceName, Snapshot)| {
                    let counts = counters.iter().enumerate();
                    let counts = counts.filter_map(|(index, counter)| {
                        Some((*place, index, snapshot.get(counter)?))
                    });
                    counts.collect::<Vec<_>>()
                };
                places.iter().flat_map(each).collect()
            }),
            Self::Elsewhere => Ok(Vec::new()),
        };
        match read {
            Err(ReadError::NotScheduled) => Ok((members, Vec::new())),
            read => Ok((members, read?)),
        }
    }

    fn members(&self) -> usize {
        match self {
            Self::Alone(_) | Self::Elsewhere => 1,
            Self::Together { counters, .. } => counters.len(),
        }
    }
}
