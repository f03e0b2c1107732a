//! The header of a recording and its sections (`struct perf_file_header`).

use std::ops::Range;

use crate::attr::{Attr, EventDescription};
use crate::bytes::Bytes;
use crate::error::Error;
use crate::features::Features;
use crate::features_read::{self, EventName};

/// What the parts around the records tell.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The events, without names.
    pub(super) events: Vec<EventDescription>,
    pub(super) names: Vec<EventName>,
    pub(super) features: Features,
    /// Where the records are.
    pub(super) data: Range<usize>,
    /// Whether events and features come as records.
    pub(super) pipe: bool,
    pub(super) truncated: bool,
}

/// `struct perf_file_section`
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

pub(super) fn open(file: &[u8]) -> Result<Opened, Error> {
    let mut header = Bytes::new(file);
    match header.array::<8>() {
        Some(magic) if &magic == b"PERFILE2" => {}
        Some(magic) if &magic == b"2ELIFREP" => return Err(Error::BigEndian),
        Some(magic) if &magic == b"PERFFILE" => return Err(Error::OldFormat),
        None if file.is_empty() => return Err(Error::Empty),
        None if b"PERFILE2".starts_with(file) => return Err(Error::NoHeader),
        _ => return Err(Error::NotPerfData),
    }
    // In pipe form the header ends here: 16 bytes.
    let header_size = header.u64().ok_or(Error::NoHeader)?;
    if header_size == 16 {
        return Ok(Opened {
            data: 16..file.len(),
            pipe: true,
            ..Opened::default()
        });
    }
    sections(file, header).ok_or(Error::NoHeader)?
}

/// The outer `Option` is `None` if the file is too short.
fn sections(file: &[u8], mut header: Bytes<'_>) -> Option<Result<Opened, Error>> {
    let entry_size = header.u64()?;
    let attrs = Section::parse(&mut header)?;
    let data = Section::parse(&mut header)?;
    Section::parse(&mut header)?;
    let features = header.array::<32>()?;
    let events = match events(file, attrs, entry_size)? {
        Ok(events) => events,
        Err(error) => return Some(Err(error)),
    };
    let start = usize::try_from(data.offset).unwrap_or(usize::MAX);
    let start = start.min(file.len());
    let mut opened = Opened {
        events,
        data: start..file.len(),
        truncated: true,
        ..Opened::default()
    };
    // The size is filled in when recording ends. Without it, or with a file that ends earlier,
    // there is nothing after the records.
    let end = (data.size > 0).then(|| data.range(file)).flatten();
    if let Some(range) = end {
        opened.truncated = false;
        read_features(file, range.end, features, &mut opened);
        opened.data = range;
    }
    Some(Ok(opened))
}

fn events(
    file: &[u8],
    section: Section,
    entry_size: u64,
) -> Option<Result<Vec<EventDescription>, Error>> {
    // Each entry ends with the section of the event's ids.
    const IDS: usize = 16;
    let entry_size = usize::try_from(entry_size).ok()?;
    let attr_size = entry_size.checked_sub(IDS).filter(|&size| size > 0)?;
    let entries = file.get(section.range(file)?)?.chunks_exact(entry_size);
    let mut ids_left = file.len();
    let event = |entry: &[u8]| {
        let (attr, ids) = entry.split_at(attr_size);
        let ids = Section::parse(&mut Bytes::new(ids));
        let ids = ids.and_then(|ids| file.get(ids.range(file)?));
        // Events have no ids in common: they can't have more than fit into the file.
        let ids = ids.filter(|ids| ids.len() <= ids_left).unwrap_or_default();
        ids_left -= ids.len();
        let (ids, _) = ids.as_chunks();
        Ok(EventDescription {
            attr: Attr::parse(attr)?,
            name: String::new(),
            ids: ids.iter().map(|&id| u64::from_le_bytes(id)).collect(),
        })
    };
    Some(entries.map(event).collect())
}

/// The table of feature sections follows the records: one entry for each bit that is set.
fn read_features(file: &[u8], table: usize, bits: [u8; 32], opened: &mut Opened) {
    let mut table = Bytes::new(file.get(table..).unwrap_or_default());
    let set = (0..256_u64).filter(|bit| bits[(bit / 8) as usize] >> (bit % 8) & 1 != 0);
    for feature in set {
        let section = Section::parse(&mut table);
        let content = section.and_then(|section| file.get(section.range(file)?));
        let Some(content) = content else {
            opened.truncated = true;
            continue;
        };
        if feature == features_read::EVENT_DESC {
            opened.names = features_read::event_names(content);
        } else {
            features_read::read(feature, content, &mut opened.features);
        }
    }
}

impl Section {
    fn parse(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Self {
            offset: bytes.u64()?,
            size: bytes.u64()?,
        })
    }

    /// Where it is, if it is all there.
    fn range(self, file: &[u8]) -> Option<Range<usize>> {
        let start = usize::try_from(self.offset).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        (end <= file.len()).then_some(start..end)
    }
}
