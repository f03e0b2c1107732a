//! The positions of fields in a record, which depend on how its event was opened.

use crate::abi::record_type;
use crate::attr::{Attr, EventDescription};
use crate::bits::{AttrFlags, SampleType};
use crate::bytes::u64_at;
use crate::error::{Error, RecordError};
use crate::header::RecordHeader;

/// Parses the records of a set of events, which come from a ring or from a file.
#[derive(Clone, Debug, Default)]
pub struct RecordFormat {
    pub(crate) attrs: Vec<Attr>,
    layouts: Vec<TimeOffsets>,
    /// Id to event, by id.
    ids: Vec<(u64, usize)>,
    /// The position of a record's id, independent of its event.
    identity: Identity,
}

impl Attr {
    /// Gives a sample of this event another time, if it has one.
    pub fn set_sample_time(&self, sample: &mut [u8], time: u64) {
        set(sample, TimeOffsets::of(self).sample_time, time);
    }

    /// Gives a sample of this event another period, if it has one.
    pub fn set_sample_period(&self, sample: &mut [u8], period: u64) {
        let before = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
            SampleType::ID,
            SampleType::STREAM_ID,
            SampleType::CPU,
        ];
        let has = self.sample_type.contains(SampleType::PERIOD);
        let at = has.then(|| RecordHeader::SIZE + size_of_fields(self, &before));
        set(sample, at, period);
    }
}

fn set(record: &mut [u8], at: Option<usize>, value: u64) {
    let field = at.and_then(|at| record.get_mut(at..at + size_of::<u64>()));
    if let Some(field) = field {
        field.copy_from_slice(&value.to_le_bytes());
    }
}

/// The positions of fields in the records of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeOffsets {
    /// Offset of the time from a sample's start.
    sample_time: Option<usize>,
    /// Offset of the time from the end of another record.
    trailer_time: Option<usize>,
}

/// How to find which event a record is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Identity {
    /// There is only one event, or the record has no id.
    #[default]
    First,
    /// The id is at these offsets: from a sample's start, from another record's end.
    Id {
        sample: usize,
        trailer: Option<usize>,
    },
}

impl RecordFormat {
    /// The format of these events' records.
    ///
    /// # Errors
    /// There are no events, or several of different sample types and without identifiers.
    pub fn new(events: &[EventDescription]) -> Result<Self, Error> {
        let (first, others) = events.split_first().ok_or(Error::NoEvents)?;
        let mut ids: Vec<_> = events
            .iter()
            .enumerate()
            .flat_map(|(index, event)| event.ids.iter().map(move |&id| (id, index)))
            .collect();
        ids.sort_by_key(|&(id, _)| id);
        let alike = others.iter().all(|other| {
            other.attr.sample_type == first.attr.sample_type
                && sample_id_all(&other.attr) == sample_id_all(&first.attr)
        });
        let identified = events
            .iter()
            .all(|event| event.attr.sample_type.contains(SampleType::IDENTIFIER));
        let identity = if others.is_empty() {
            Identity::First
        } else if identified || alike {
            Identity::of(&first.attr)
        } else {
            return Err(Error::Indistinguishable);
        };
        Ok(Self {
            attrs: events.iter().map(|event| event.attr.clone()).collect(),
            layouts: events
                .iter()
                .map(|event| TimeOffsets::of(&event.attr))
                .collect(),
            ids,
            identity,
        })
    }

    /// The time of the record, in ns; `None` if it has none. Cheaper than parsing it.
    pub fn time(&self, record: &[u8]) -> Option<u64> {
        let header = RecordHeader::parse(record)?;
        if header.kind >= record_type::HEADER_ATTR {
            return None;
        }
        let layout = self.layouts.get(self.event_of(header, record).ok()?)?;
        let offset = match header.kind {
            record_type::SAMPLE => layout.sample_time?,
            _ => record.len().checked_sub(layout.trailer_time?)?,
        };
        let time = u64_at(record, offset)?;
        // perf writes records of its own without a time, which then is 0 or -1.
        (time != 0 && time != u64::MAX).then_some(time)
    }

    /// The attribute of an event, as [`Stamp::event`](crate::Stamp::event) counts them.
    pub fn attr(&self, event: usize) -> Option<&Attr> {
        self.attrs.get(event)
    }

    /// The event of the record.
    pub(crate) fn event_of(
        &self,
        header: RecordHeader,
        record: &[u8],
    ) -> Result<usize, RecordError> {
        let Identity::Id { sample, trailer } = self.identity else {
            return Ok(0);
        };
        let short = || header.short(record);
        if header.kind == record_type::SAMPLE {
            let id = u64_at(record, sample).ok_or_else(short)?;
            return self.event_of_id(id).ok_or(RecordError::UnknownId { id });
        }
        let Some(trailer) = trailer else { return Ok(0) };
        let offset = record.len().checked_sub(trailer).ok_or_else(short)?;
        let id = u64_at(record, offset).ok_or_else(short)?;
        // Records synthesized by perf have the id 0.
        Ok(self.event_of_id(id).unwrap_or(0))
    }

    pub(crate) fn event_of_id(&self, id: u64) -> Option<usize> {
        let found = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        self.ids.get(found).map(|&(_, event)| event)
    }
}

impl TimeOffsets {
    fn of(attr: &Attr) -> Self {
        let has = |bit| attr.sample_type.contains(bit);
        let before = [SampleType::IDENTIFIER, SampleType::IP, SampleType::TID];
        let timed = has(SampleType::TIME);
        Self {
            sample_time: timed.then(|| RecordHeader::SIZE + size_of_fields(attr, &before)),
            trailer_time: (timed && sample_id_all(attr)).then(|| {
                size_of_fields(
                    attr,
                    &[
                        SampleType::TIME,
                        SampleType::ID,
                        SampleType::STREAM_ID,
                        SampleType::CPU,
                        SampleType::IDENTIFIER,
                    ],
                )
            }),
        }
    }
}

impl Identity {
    fn of(attr: &Attr) -> Self {
        let all = sample_id_all(attr);
        if attr.sample_type.contains(SampleType::IDENTIFIER) {
            return Self::Id {
                sample: RecordHeader::SIZE,
                trailer: all.then_some(8),
            };
        }
        if !attr.sample_type.contains(SampleType::ID) {
            return Self::First;
        }
        let before = [
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
        ];
        let behind = [SampleType::ID, SampleType::STREAM_ID, SampleType::CPU];
        Self::Id {
            sample: RecordHeader::SIZE + size_of_fields(attr, &before),
            trailer: all.then(|| size_of_fields(attr, &behind)),
        }
    }
}

/// Each of these fields has 8 bytes if it is there.
fn size_of_fields(attr: &Attr, fields: &[SampleType]) -> usize {
    let there = |field: &&SampleType| attr.sample_type.contains(**field);
    8 * fields.iter().filter(there).count()
}

pub(crate) fn sample_id_all(attr: &Attr) -> bool {
    attr.flags.contains(AttrFlags::SAMPLE_ID_ALL)
}
