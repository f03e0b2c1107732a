//! Bytes to features. Truncated or unknown ones are ignored.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use prof_model::BuildId;

use crate::abi::{CpuMode, misc};
use crate::bytes::Bytes;
use crate::features::{ClockData, CpuCounts, Features, ModuleBuildId, feature};
use crate::header::RecordHeader;

pub(crate) use crate::features::feature::EVENT_DESC;

/// The name of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventName {
    /// One of its ids. `None`: names come in the order of the events.
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
}

/// Reads the content of a feature's section.
pub(crate) fn read(number: u64, content: &[u8], features: &mut Features) {
    let mut bytes = Bytes::new(content);
    let bytes = &mut bytes;
    match number {
        feature::BUILD_ID => build_ids(content, features),
        feature::HOSTNAME => features.hostname = text(bytes),
        feature::OSRELEASE => features.os_release = text(bytes),
        feature::VERSION => features.version = text(bytes),
        feature::ARCH => features.arch = text(bytes),
        feature::NRCPUS => features.nr_cpus = cpu_counts(bytes),
        feature::CPUDESC => features.cpu_desc = text(bytes),
        feature::CPUID => features.cpu_id = text(bytes),
        feature::TOTAL_MEM => features.total_memory = bytes.u64(),
        feature::CMDLINE => features.command_line = command_line(bytes),
        feature::STAT => features.has_counts_only = true,
        feature::SAMPLE_TIME => features.sample_time = bytes.u64().zip(bytes.u64()),
        feature::CLOCKID => features.clock_resolution = bytes.u64(),
        feature::CLOCK_DATA => features.clock = clock_data(bytes),
        feature::QUALITY => features.quality = serde_json::from_slice(content).ok(),
        feature::SYMBOLS => features.symbols = Some(content.to_vec()),
        _ => {}
    }
}

/// Reads build id records (`struct perf_record_header_build_id`), one after the other.
pub(crate) fn build_ids(content: &[u8], features: &mut Features) {
    let mut rest = content;
    while let Some(header) = RecordHeader::parse(rest) {
        let Some((record, behind)) = rest.split_at_checked(header.size.into()) else {
            return;
        };
        rest = behind;
        features.build_ids.extend(build_id(header, record));
    }
}

fn build_id(header: RecordHeader, record: &[u8]) -> Option<ModuleBuildId> {
    let mut body = Bytes::new(record.get(RecordHeader::SIZE..)?);
    let pid = body.i32()?;
    // 20 bytes of build id, one of its size, three of padding.
    let id = body.array::<24>()?;
    let size = match header.misc & misc::BUILD_ID_SIZE {
        0 => BuildId::MAX_LENGTH,
        _ => usize::from(id[BuildId::MAX_LENGTH]).min(BuildId::MAX_LENGTH),
    };
    Some(ModuleBuildId {
        mode: CpuMode::from_misc(header.misc),
        pid,
        build_id: BuildId::new(&id[..size])?,
        path: OsStr::from_bytes(body.string()).to_owned(),
    })
}

/// The names in EVENT_DESC.
pub(crate) fn event_names(content: &[u8]) -> Vec<EventName> {
    /// The most plausible number of events.
    const MOST: u32 = 1 << 16;
    let mut bytes = Bytes::new(content);
    let (Some(count), Some(attr_size)) = (bytes.u32(), bytes.u32()) else {
        return Vec::new();
    };
    let name = |_| event_name(&mut bytes, attr_size);
    (0..count.min(MOST)).map_while(name).collect()
}

fn event_name(bytes: &mut Bytes<'_>, attr_size: u32) -> Option<EventName> {
    bytes.take_items(attr_size.into(), 1)?;
    let ids = bytes.u32()?;
    let name = text(bytes)?;
    let mut ids = Bytes::new(bytes.take_items(ids.into(), 8)?);
    Some(EventName {
        id: ids.u64(),
        name,
    })
}

/// A string with its padded length before it.
fn string<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = bytes.u32()?;
    let padded = bytes.take_items(length.into(), 1)?;
    Some(Bytes::new(padded).string())
}

fn text(bytes: &mut Bytes<'_>) -> Option<String> {
    string(bytes).map(|text| String::from_utf8_lossy(text).into_owned())
}

fn command_line(bytes: &mut Bytes<'_>) -> Vec<OsString> {
    /// The most plausible number of arguments.
    const MOST: u32 = 1 << 16;
    let count = bytes.u32().unwrap_or(0).min(MOST);
    let argument = |_| string(bytes).map(|text| OsStr::from_bytes(text).to_owned());
    (0..count).map_while(argument).collect()
}

fn cpu_counts(bytes: &mut Bytes<'_>) -> Option<CpuCounts> {
    Some(CpuCounts {
        available: bytes.u32()?,
        online: bytes.u32()?,
    })
}

fn clock_data(bytes: &mut Bytes<'_>) -> Option<ClockData> {
    // A version comes first, which is 1.
    bytes.u32()?;
    Some(ClockData {
        clockid: bytes.u32()?,
        wall_clock: bytes.u64()?,
        clock: bytes.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use prof_model::{Fallback, StackEnd};

    use super::*;

    /// The quality section of the first recordings, whose members had other names.
    const FIRST: &str = r#"{
        "samples": 1204,
        "stacks": {"root": 1200, "truncated-dump": 4},
        "read_back": 17,
        "losses": {
            "ring_full": 1, "backlog": 23, "cut_stacks": 5, "throttled": 2, "malformed": 0,
            "corrupt_rings": 0, "truncated_file": false
        },
        "fallbacks": [
            {"kind": "stops", "reason": "a seccomp filter", "hertz": 999},
            {"kind": "sleepers", "paranoid": 2},
            {"kind": "stack-dump", "asked": 65528, "used": 8192}
        ],
        "failures": [{"end": "truncated-dump", "module": "/bin/x", "offset": 4660, "count": 4}],
        "coverage": [{
            "process": "x", "thread": "x", "threads": 1, "used": 100, "unseen": 0,
            "sampled": 99, "samples": 1204
        }],
        "waits": {"waits": 9, "seen": 8, "time": 70, "seen_time": 60, "placed_time": 5}
    }"#;

    #[test]
    fn the_quality_of_the_first_recordings_is_read() {
        let mut features = Features::default();
        read(feature::QUALITY, FIRST.as_bytes(), &mut features);
        let quality = features.quality.unwrap();
        assert_eq!((quality.samples, quality.remote_read), (1204, 17));
        assert_eq!(quality.stacks[&StackEnd::TruncatedDump], 4);
        assert_eq!(
            (quality.losses.queue_full, quality.losses.cut_stacks),
            (23, 5)
        );
        let paranoid = 2;
        let ptrace = Fallback::Ptrace {
            reason: Some("a seccomp filter".into()),
            hertz: 999,
        };
        assert_eq!(
            quality.fallbacks[..2],
            [ptrace, Fallback::BlockedThreads { paranoid }]
        );
        assert_eq!(quality.failures[0].end, StackEnd::TruncatedDump);
        assert_eq!(quality.coverage[0].sampled, 99);
        assert_eq!(quality.waits.unwrap().placed_time, 5);
    }
}
