//! Features to bytes.

use std::os::unix::ffi::OsStrExt;

use prof_model::BuildId;

use crate::abi::misc;
use crate::attr::{Attr, EventDescription};
use crate::features::{Compression, Features, ModuleBuildId, feature};
use crate::header::RecordHeader;

/// The sections of the known features, by number.
pub(crate) fn sections(features: &Features, events: &[EventDescription]) -> Vec<(u64, Vec<u8>)> {
    let texts = [
        (feature::HOSTNAME, &features.hostname),
        (feature::OSRELEASE, &features.os_release),
        (feature::VERSION, &features.version),
        (feature::ARCH, &features.arch),
        (feature::CPUDESC, &features.cpu_desc),
        (feature::CPUID, &features.cpu_id),
    ];
    let mut sections = vec![(feature::EVENT_DESC, event_desc(events))];
    for (number, text) in texts {
        if let Some(text) = text {
            sections.push((number, string(text.as_bytes())));
        }
    }
    if !features.build_ids.is_empty() {
        let records = features.build_ids.iter().flat_map(build_id).collect();
        sections.push((feature::BUILD_ID, records));
    }
    if !features.command_line.is_empty() {
        sections.push((feature::CMDLINE, command_line(features)));
    }
    sections.extend(numbers(features));
    let quality = features.quality.as_ref();
    if let Some(json) = quality.and_then(|quality| serde_json::to_vec(quality).ok()) {
        sections.push((feature::QUALITY, json));
    }
    if let Some(symbols) = &features.symbols {
        sections.push((feature::SYMBOLS, symbols.clone()));
    }
    sections.sort_by_key(|&(number, _)| number);
    sections
}

fn numbers(features: &Features) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let cpus = features.nr_cpus.map(|cpus| {
        let counts = [cpus.available, cpus.online];
        (feature::NRCPUS, counts.map(u32::to_le_bytes).concat())
    });
    let memory = features.total_memory;
    let memory = memory.map(|kib| (feature::TOTAL_MEM, kib.to_le_bytes().to_vec()));
    let time = features.sample_time.map(|(first, last)| {
        let times = [first, last].map(u64::to_le_bytes);
        (feature::SAMPLE_TIME, times.concat())
    });
    let resolution = features.clock_resolution;
    let resolution = resolution.map(|ns| (feature::CLOCKID, ns.to_le_bytes().to_vec()));
    let clock = features.clock.map(|clock| {
        const VERSION: u32 = 1;
        let mut bytes = [VERSION, clock.clockid].map(u32::to_le_bytes).concat();
        bytes.extend(
            [clock.wall_clock, clock.clock]
                .map(u64::to_le_bytes)
                .concat(),
        );
        (feature::CLOCK_DATA, bytes)
    });
    let compression = features.compression.map(compression);
    [cpus, memory, time, resolution, clock, compression]
        .into_iter()
        .flatten()
}

/// Version, kind, level, ratio, and the size of the readers' buffer.
pub(crate) fn compression(compression: Compression) -> (u64, Vec<u8>) {
    const VERSION: u32 = 1;
    const ZSTD: u32 = 1;
    let Compression {
        level,
        ratio,
        buffer_size,
    } = compression;
    let numbers = [VERSION, ZSTD, level as u32, ratio, buffer_size];
    let bytes = numbers.map(u32::to_le_bytes).concat();
    (feature::COMPRESSED, bytes)
}

/// Count, size of the attributes; then for each event: attribute, count of ids, name, ids.
fn event_desc(events: &[EventDescription]) -> Vec<u8> {
    let mut bytes = [events.len(), Attr::SIZE]
        .map(|number| (number as u32).to_le_bytes())
        .concat();
    for event in events {
        bytes.extend(event.attr.to_bytes());
        bytes.extend((event.ids.len() as u32).to_le_bytes());
        bytes.extend(string(event.name.as_bytes()));
        bytes.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
    }
    bytes
}

fn command_line(features: &Features) -> Vec<u8> {
    let count = features.command_line.len() as u32;
    let arguments = features.command_line.iter();
    let strings = arguments.flat_map(|argument| string(argument.as_bytes()));
    count.to_le_bytes().into_iter().chain(strings).collect()
}

/// `struct perf_record_header_build_id`
fn build_id(module: &ModuleBuildId) -> Vec<u8> {
    /// The longest path in a record with 16 bits of size, in whole steps of padding.
    const LONGEST_PATH: usize = 65_535 / ALIGN * ALIGN - 2 * ALIGN;
    let path = module.path.as_bytes();
    let path = padded(path.get(..LONGEST_PATH).unwrap_or(path));
    let mut id = [0; 24];
    let known = module.build_id.as_bytes();
    id[..known.len()].copy_from_slice(known);
    id[BuildId::MAX_LENGTH] = known.len() as u8;
    let size = RecordHeader::SIZE + 4 + id.len() + path.len();
    let header = RecordHeader {
        kind: 0,
        misc: module.mode.to_misc() | misc::BUILD_ID_SIZE,
        size: size as u16,
    };
    let mut record = header.to_bytes().to_vec();
    record.extend(module.pid.to_le_bytes());
    record.extend(id);
    record.extend(path);
    record
}

/// perf's `NAME_ALIGN`.
const ALIGN: usize = 64;

/// A string with its padded length before it.
fn string(text: &[u8]) -> Vec<u8> {
    let padded = padded(text);
    let length = (padded.len() as u32).to_le_bytes();
    length.into_iter().chain(padded).collect()
}

/// At least one zero byte follows.
fn padded(text: &[u8]) -> Vec<u8> {
    let mut padded = text.to_vec();
    padded.resize((text.len() + 1).next_multiple_of(ALIGN), 0);
    padded
}
