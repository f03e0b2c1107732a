//! The counters of all events on all targets, with substitutes for unavailable events.

use std::collections::BTreeMap;

use anyhow::Result;
use prof_counters::{
    Count, EventGroup, EventSpec, OpenError, Options, PlaceName, ReadError, Target,
};
use prof_events::parsing::encoding_of;

use super::part::{Cell, Part};
use super::refused::Refused;
use super::row::{Counts, Origin, Row};
use super::selection::Selection;

/// The counters of all events on all targets.
pub(super) struct Counters {
    pub(super) rows: Vec<Row>,
    /// The substitutes and omissions, and why, as sentences.
    pub(super) notes: Vec<String>,
    targets: Vec<Vec<Part>>,
}

/// How to open the counters.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) options: Options,
    /// Whether getrusage can supply context switches when the command has ended.
    pub(super) usage: bool,
}

impl Counters {
    /// Opens everything. An unavailable or forbidden event is replaced or, unless the user named
    /// it, left out.
    pub(super) fn open(selection: &Selection, targets: &[Target], terms: Terms) -> Result<Self> {
        let mut opened = Self {
            rows: Vec::new(),
            notes: Vec::new(),
            targets: Vec::new(),
        };
        let Some((first, others)) = targets.split_first() else {
            return Ok(opened);
        };
        let mut groups = Vec::new();
        let mut parts = Vec::new();
        let mut refused = Refused::default();
        for group in &selection.groups {
            match try_open(group, first, terms) {
                Ok(Opened {
                    group,
                    part,
                    origin,
                }) => {
                    opened.rows.extend(
                        group
                            .events
                            .iter()
                            .map(|event| Row::new(event, selection, origin)),
                    );
                    groups.push((group, origin));
                    parts.push(part);
                }
                Err(error) if selection.by_name => return Err(error.into()),
                Err(error) if error.is_permission() || error.is_unsupported() => {
                    refused.add(group, error)
                }
                Err(error) => return Err(error.into()),
            }
        }
        opened.targets.push(parts);
        for target in others {
            let parts = groups.iter().map(|(group, origin)| match origin {
                Origin::Counter => Part::open(group, target, terms.options),
                Origin::Usage => Ok(Part::Elsewhere),
            });
            opened.targets.push(parts.collect::<Result<_, _>>()?);
        }
        opened.notes = refused.notes(&opened.rows)?;
        opened
            .notes
            .extend(opened.rows.iter().filter_map(Row::always_zero));
        Ok(opened)
    }

    /// Starts all counters.
    pub(super) fn enable(&mut self) -> Result<(), ReadError> {
        self.parts().try_for_each(|part| match part {
            Part::Alone(counter) => counter.enable(),
            Part::Together { group, .. } => group.enable(),
            Part::Elsewhere => Ok(()),
        })
    }

    /// Stops all counters.
    pub(super) fn disable(&mut self) -> Result<(), ReadError> {
        self.parts().try_for_each(|part| match part {
            Part::Alone(counter) => counter.disable(),
            Part::Together { group, .. } => group.disable(),
            Part::Elsewhere => Ok(()),
        })
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        self.targets.iter_mut().flatten()
    }

    /// The counts, summed over all targets.
    pub(super) fn read(&mut self) -> Result<Counts, ReadError> {
        let mut sums: Counts = vec![Some(Count::default()); self.rows.len()];
        for parts in &mut self.targets {
            let mut row = sums.iter_mut();
            for part in parts {
                for count in part.read()? {
                    if let Some(sum) = row.next() {
                        *sum = sum.zip(count).map(|(sum, count)| sum.plus(count));
                    }
                }
            }
        }
        Ok(sums)
    }

    /// The counts at each place.
    pub(super) fn read_places(&mut self) -> Result<BTreeMap<PlaceName, Counts>, ReadError> {
        let rows = self.rows.len();
        let mut places: BTreeMap<PlaceName, Counts> = BTreeMap::new();
        for parts in &mut self.targets {
            let mut first = 0;
            for part in parts {
                for Cell { place, row, count } in part.read_places()? {
                    let counts = places.entry(place).or_insert_with(|| vec![None; rows]);
                    if let Some(cell) = counts.get_mut(first + row) {
                        *cell = Some(count);
                    }
                }
                first += part.members();
            }
        }
        Ok(places)
    }
}

struct Opened {
    group: EventGroup,
    part: Part,
    origin: Origin,
}

/// Opens a group of events, in user code only if kernel code is forbidden.
fn try_open(group: &EventGroup, target: &Target, terms: Terms) -> Result<Opened, OpenError> {
    let refused = match Part::open(group, target, terms.options) {
        Ok(part) => {
            return Ok(Opened {
                group: group.clone(),
                part,
                origin: Origin::Counter,
            });
        }
        Err(error) if error.is_permission() => error,
        Err(error) => return Err(error),
    };
    let in_kernel =
        |event: &EventSpec| event.happens_in_kernel_only() && !event.modifiers.explicit_modes;
    if let [event] = &group.events[..]
        && in_kernel(event)
    {
        // Of these, getrusage has the context switches.
        return match terms.usage && is_context_switches(event) {
            true => Ok(Opened {
                group: group.clone(),
                part: Part::Elsewhere,
                origin: Origin::Usage,
            }),
            false => Err(refused),
        };
    }
    if group.events.iter().any(in_kernel) {
        return Err(refused);
    }
    let mut user = group.clone();
    for event in &mut user.events {
        *event = event.user_only().unwrap_or_else(|| event.clone());
    }
    match Part::open(&user, target, terms.options) {
        Ok(part) => Ok(Opened {
            group: user,
            part,
            origin: Origin::Counter,
        }),
        Err(error) if error.is_permission() => Err(refused),
        Err(error) => Err(error),
    }
}

fn is_context_switches(event: &EventSpec) -> bool {
    encoding_of("context-switches").is_some_and(|encoding| encoding == event.encoding)
}
