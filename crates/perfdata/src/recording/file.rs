//! The header of a recording and its sections (`struct perf_file_header`).

use std::ops::Range;

use crate::attr::{Attr, EventDescription};
use crate::bytes::Bytes;
use crate::error::Error;
use crate::features::read::EventName;
use crate::features::{self, Features, feature};

/// The content of the sections around the records.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The events, without names.
    pub(super) events: Vec<EventDescription>,
    pub(super) names: Vec<EventName>,
    pub(super) features: Features,
    /// The range of the records.
    pub(super) data: Range<usize>,
    /// Whether events and features come as records.
    pub(super) pipe: bool,
    pub(super) truncated: bool,
    /// Whether another recording begins where this one ends, as after `cat a b`.
    pub(super) followed: bool,
}

/// `struct perf_file_section`
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

/// How a recording begins.
pub(super) const MAGIC: &[u8; 8] = b"PERFILE2";

pub(super) fn open(file: &[u8]) -> Result<Opened, Error> {
    let mut header = Bytes::new(file);
    match header.array::<8>() {
        Some(magic) if &magic == MAGIC => {}
        Some(magic) if &magic == b"2ELIFREP" => return Err(Error::BigEndian),
        Some(magic) if &magic == b"PERFFILE" => return Err(Error::OldFormat),
        None if file.is_empty() => return Err(Error::Empty),
        None if MAGIC.starts_with(file) => return Err(Error::NoHeader),
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
    // The size is filled in, or at least final, when recording ends. Without it, or with a file
    // that ends earlier, there is nothing after the records.
    let end = (data.size > 0).then(|| data.range(file)).flatten();
    // A finished recording has features: without any, the size in the header is that of the last
    // checkpoint.
    if let Some(range) = end.filter(|_| features != [0; 32]) {
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

/// The features after the records.
fn read_features(file: &[u8], table: usize, bits: [u8; 32], opened: &mut Opened) {
    let entries: usize = bits.iter().map(|byte| byte.count_ones() as usize).sum();
    let mut end = table.saturating_add(entries * Section::SIZE);
    for (feature, content) in feature_sections(file, table, bits) {
        let Some(content) = content else {
            opened.truncated = true;
            continue;
        };
        end = end.max(content.end);
        let content = file.get(content).unwrap_or_default();
        if feature == features::read::EVENT_DESC {
            opened.names = features::read::event_names(content);
        } else {
            features::read::read(feature, content, &mut opened.features);
        }
    }
    let rest = file.get(end..).unwrap_or_default();
    opened.followed = rest.starts_with(MAGIC);
}

/// The table of feature sections follows the records: one entry for each bit that is set. `None`
/// for a section that is not there.
fn feature_sections(
    file: &[u8],
    table: usize,
    bits: [u8; 32],
) -> impl Iterator<Item = (u64, Option<Range<usize>>)> {
    let mut table = Bytes::new(file.get(table..).unwrap_or_default());
    let set = (0..256_u64).filter(move |bit| bits[(bit / 8) as usize] >> (bit % 8) & 1 != 0);
    set.map(move |feature| {
        let section = Section::parse(&mut table);
        (feature, section.and_then(|section| section.range(file)))
    })
}

/// How a finished recording in file form is laid out.
#[derive(Debug)]
pub(crate) struct FileParts<'a> {
    /// Up to where the features describe each feature, which are 32 bytes.
    pub(crate) before_bits: &'a [u8],
    /// The bytes from there to the end of the records.
    pub(crate) after_bits: &'a [u8],
    /// The content of each feature, by number.
    pub(crate) features: Vec<(u64, &'a [u8])>,
}

impl<'a> FileParts<'a> {
    /// The bits of the features in the header.
    const BITS: Range<usize> = 72..104;

    /// `None` if the recording is in pipe form, not finished, cut off, or laid out in another way.
    pub(crate) fn read(file: &'a [u8]) -> Result<Option<Self>, Error> {
        let opened = open(file)?;
        if opened.pipe || opened.truncated {
            return Ok(None);
        }
        Ok(Self::split(file, opened.data.end))
    }

    fn split(file: &'a [u8], data_end: usize) -> Option<Self> {
        /// The position in the header of the attributes' offset and size.
        const ATTRIBUTES: usize = 24;
        let attributes = Section::parse(&mut Bytes::new(file.get(ATTRIBUTES..)?))?;
        if attributes.range(file)?.end > data_end {
            return None;
        }
        let bits = file.get(Self::BITS)?.try_into().ok()?;
        let features = feature_sections(file, data_end, bits)
            .map(|(number, content)| Some((number, file.get(content?)?)))
            .collect::<Option<Vec<(u64, &[u8])>>>()?;
        // They do not overlap, except in a file that is made to produce a large copy.
        let total: usize = features.iter().map(|(_, content)| content.len()).sum();
        if total > file.len() - data_end {
            return None;
        }
        Some(Self {
            before_bits: file.get(..Self::BITS.start)?,
            after_bits: file.get(Self::BITS.end..data_end)?,
            features,
        })
    }

    pub(crate) fn features_without_symbols(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let features = self.features.iter().copied();
        features.filter(|&(number, _)| number != feature::SYMBOLS)
    }
}

impl Section {
    /// Its bytes in the file.
    const SIZE: usize = 16;

    fn parse(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Self {
            offset: bytes.u64()?,
            size: bytes.u64()?,
        })
    }

    /// Its range, if it is complete.
    fn range(self, file: &[u8]) -> Option<Range<usize>> {
        let start = usize::try_from(self.offset).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        (end <= file.len()).then_some(start..end)
    }
}
