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

/// The count of one row at one place.
pub(super) struct Cell {
    pub(super) place: PlaceName,
    /// The row's index in its part.
    pub(super) row: usize,
    pub(super) count: Count,
}

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

    /// The count of each of its rows at each place.
    pub(super) fn read_places(&mut self) -> Result<Vec<Cell>, ReadError> {
        let read = match self {
            Self::Alone(counter) => {
                let cell = |(place, count)| Cell {
                    place,
                    row: 0,
                    count,
                };
                let places = counter.read_places();
                places.map(|places| places.into_iter().map(cell).collect())
            }
            Self::Together { group, counters } => group.read_places().map(|places| {
                let each = |(place, snapshot): &(PlaceName, Snapshot)| {
                    let counts = counters.iter().enumerate();
                    let counts = counts.filter_map(|(row, counter)| {
                        Some(Cell {
                            place: *place,
                            row,
                            count: snapshot.get(counter)?,
                        })
                    });
                    counts.collect::<Vec<_>>()
                };
                places.iter().flat_map(each).collect()
            }),
            Self::Elsewhere => Ok(Vec::new()),
        };
        match read {
            Err(ReadError::NotScheduled) => Ok(Vec::new()),
            read => read,
        }
    }

    /// The number of its rows.
    pub(super) fn members(&self) -> usize {
        match self {
            Self::Alone(_) | Self::Elsewhere => 1,
            Self::Together { counters, .. } => counters.len(),
        }
    }
}
