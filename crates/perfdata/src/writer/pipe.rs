//! The pipe form: the sections of a file, as records before and after the others.

use crate::abi::{OWN_FEATURE, record_type};
use crate::attr::EventDescription;
use crate::features::{self, Compression, Features, feature};
use crate::header::RecordHeader;

/// The data before the records: the short header, the events, and facts about the machine.
pub(crate) fn start(features: &Features, events: &[EventDescription]) -> Vec<u8> {
    const HEADER: u64 = 16;
    let mut out = b"PERFILE2".to_vec();
    out.extend(HEADER.to_le_bytes());
    for event in events {
        let ids = event.ids.iter().flat_map(|id| id.to_le_bytes());
        let mut body = event.attr.to_bytes().to_vec();
        body.extend(ids);
        // Ids that do not fit in a record are dropped: readers assign such samples to the first
        // event.
        body.truncate(LONGEST / 8 * 8);
        RecordHeader::put(&mut out, record_type::HEADER_ATTR, &body);
    }
    for (number, content) in features::write::sections(features, events) {
        if number != feature::BUILD_ID {
            put_feature(&mut out, number, &content);
        }
    }
    out
}

/// How the records that follow are packed.
pub(crate) fn compression(compression: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    let (number, content) = features::write::compression(compression);
    put_feature(&mut out, number, &content);
    out
}

/// The data after the records: build ids and quality.
pub(crate) fn end(features: &Features, events: &[EventDescription]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, content) in features::write::sections(features, events) {
        match number {
            feature::BUILD_ID => put_build_ids(&mut out, &content),
            feature::QUALITY => put_own_feature(&mut out, number, &content),
            _ => {}
        }
    }
    out
}

/// In the section they are records already, of type 0.
fn put_build_ids(out: &mut Vec<u8>, mut section: &[u8]) {
    while let Some(header) = RecordHeader::parse(section) {
        let Some((entry, rest)) = section.split_at_checked(header.size.into()) else {
            return;
        };
        let kind = record_type::HEADER_BUILD_ID;
        out.extend(RecordHeader { kind, ..header }.to_bytes());
        out.extend(&entry[RecordHeader::SIZE..]);
        section = rest;
    }
}

fn put_feature(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    put(out, record_type::HEADER_FEATURE, &[number], content);
}

/// `perf report` stops at a HEADER_FEATURE that it does not know. So the feature follows a setting
/// of `perf stat` with a tag that perf ignores.
fn put_own_feature(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    put(
        out,
        record_type::STAT_CONFIG,
        &[1, OWN_FEATURE, number],
        content,
    );
}

/// Drops content that does not fit in a record.
fn put(out: &mut Vec<u8>, kind: u32, words: &[u64], content: &[u8]) {
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    body.extend(content);
    // Records are multiples of 8 bytes.
    body.resize(body.len().next_multiple_of(8), 0);
    if body.len() <= LONGEST {
        RecordHeader::put(out, kind, &body);
    }
}

/// The most bytes of a record after its header.
const LONGEST: usize = u16::MAX as usize - RecordHeader::SIZE;
