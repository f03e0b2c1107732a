//! The description of a recording in perf's own records: in pipe form, the content of a file's
//! sections.

use super::source::Source;
use crate::abi::{OWN_FEATURE, record_type};
use crate::attr::{Attr, EventDescription};
use crate::bytes::Bytes;
use crate::error::Error;
use crate::features::read::EventName;
use crate::features::{self, Features};
use crate::format::RecordFormat;
use crate::header::RecordHeader;

/// The description so far.
#[derive(Debug, Default)]
pub(super) struct PipeHeader {
    pub(super) events: Vec<EventDescription>,
    pub(super) features: Features,
    pub(super) names: Vec<EventName>,
}

impl PipeHeader {
    /// Reads all that comes before the first record of the kernel's: events must be known by
    /// then.
    pub(super) fn read_start(&mut self, source: &mut Source) -> Result<(), Error> {
        while let Some((header, record)) = source.peek_file() {
            match header.kind {
                0..record_type::HEADER_ATTR
                | record_type::COMPRESSED
                | record_type::COMPRESSED2
                | record_type::AUXTRACE
                | record_type::HEADER_TRACING_DATA
                | record_type::FINISHED_ROUND => break,
                record_type::HEADER_ATTR => self.events.push(event(record)?),
                record_type::EVENT_UPDATE => self.names.extend(update(record)),
                _ => self.feature(header, record),
            }
            source.take_from_file();
        }
        Ok(())
    }

    /// Gives the events their names.
    pub(super) fn name_events(&mut self, format: &RecordFormat) {
        for (index, name) in self.names.drain(..).enumerate() {
            let event = match name.id {
                Some(id) => format.event_of_id(id),
                None => Some(index),
            };
            if let Some(event) = event.and_then(|event| self.events.get_mut(event)) {
                event.name = name.name;
            }
        }
        for event in &mut self.events {
            if event.name.is_empty() {
                event.name = event.attr.generic_name();
            }
        }
    }

    fn feature(&mut self, header: RecordHeader, record: &[u8]) {
        if let Some((features::read::EVENT_DESC, content)) = header_feature(header, record) {
            self.names.extend(features::read::event_names(content));
        }
        read_feature(header, record, &mut self.features);
    }
}

/// Reads PERF_RECORD_HEADER_FEATURE, prof's replacement for it, and PERF_RECORD_HEADER_BUILD_ID.
pub(super) fn read_feature(header: RecordHeader, record: &[u8], features: &mut Features) {
    if let Some((feature, content)) = header_feature(header, record) {
        features::read::read(feature, content, features);
    } else if header.kind == record_type::HEADER_BUILD_ID {
        features::read::build_ids(record, features);
    }
}

fn header_feature(header: RecordHeader, record: &[u8]) -> Option<(u64, &[u8])> {
    let body = record.get(RecordHeader::SIZE..)?;
    let mut body = Bytes::new(body);
    let is_feature = match header.kind {
        record_type::HEADER_FEATURE => true,
        record_type::STAT_CONFIG => (body.u64()?, body.u64()?) == (1, OWN_FEATURE),
        _ => false,
    };
    let feature = body.u64()?;
    is_feature.then_some((feature, body.rest()))
}

/// `struct perf_record_header_attr`
fn event(record: &[u8]) -> Result<EventDescription, Error> {
    let body = record.get(RecordHeader::SIZE..).unwrap_or_default();
    let attr = Attr::parse(body)?;
    let size = Bytes::new(body.get(4..).unwrap_or_default()).u32();
    let size = match size {
        None | Some(0) => Attr::MIN_SIZE,
        Some(size) => size as usize,
    };
    let (ids, _) = body.get(size..).unwrap_or_default().as_chunks();
    Ok(EventDescription {
        attr,
        name: String::new(),
        ids: ids.iter().map(|&id| u64::from_le_bytes(id)).collect(),
    })
}

/// `struct perf_record_event_update`, if it is about a name.
fn update(record: &[u8]) -> Option<EventName> {
    const NAME: u64 = 2;
    let mut body = Bytes::new(record.get(RecordHeader::SIZE..)?);
    let kind = body.u64()?;
    let id = body.u64()?;
    (kind == NAME).then(|| EventName {
        id: Some(id),
        name: String::from_utf8_lossy(body.string()).into_owned(),
    })
}
