//! Bytes to records.

mod sample;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use prof_model::{BuildId, FileIdentity};

use crate::abi::{CpuMode, misc, record_type};
use crate::attr::Attr;
use crate::bits::SampleType;
use crate::bytes::Bytes;
use crate::error::RecordError;
use crate::format::{RecordFormat, sample_id_all};
use crate::header::RecordHeader;
use crate::parse::sample::parse_sample;
use crate::read::ReadValues;
use crate::record::{
    Cgroup, Comm, Ksymbol, Lost, Mmap, Namespaces, Read, Record, Switch, Task, Throttle,
};
use crate::stamp::Stamp;

/// `PROT_EXEC` of `mmap(2)`.
pub(crate) const PROT_EXEC: u32 = 4;

impl RecordFormat {
    /// Parses one whole record, which begins with its header. Bytes need not be aligned.
    ///
    /// # Errors
    /// The record is too short for its event's fields, or is of an unknown event.
    pub fn parse<'a>(&self, record: &'a [u8]) -> Result<Record<'a>, RecordError> {
        parse(self, record)
    }
}

fn parse<'a>(format: &RecordFormat, record: &'a [u8]) -> Result<Record<'a>, RecordError> {
    let empty = RecordError::Short {
        kind: 0,
        size: record.len(),
    };
    let header = RecordHeader::parse(record).ok_or(empty)?;
    let short = || header.short(record);
    let body = record
        .get(RecordHeader::SIZE..usize::from(header.size))
        .ok_or_else(short)?;
    let record = &record[..usize::from(header.size)];
    if header.kind >= record_type::HEADER_ATTR {
        return Ok(of_perf(header, body));
    }
    let event = format.event_of(header, record)?;
    let attr = format.attrs.get(event).ok_or_else(short)?;
    if header.kind == record_type::SAMPLE {
        return parse_sample(attr, event, header, body)
            .map(Record::Sample)
            .ok_or_else(short);
    }
    of_kernel(attr, event, header, body).ok_or_else(short)
}

fn of_perf(header: RecordHeader, body: &[u8]) -> Record<'_> {
    match header.kind {
        record_type::FINISHED_ROUND => Record::FinishedRound,
        kind => Record::Other {
            kind,
            stamp: Stamp::default(),
            body,
        },
    }
}

fn of_kernel<'a>(
    attr: &Attr,
    event: usize,
    header: RecordHeader,
    body: &'a [u8],
) -> Option<Record<'a>> {
    let (mut bytes, stamp) = split_stamp(attr, event, body)?;
    let bytes = &mut bytes;
    Some(match header.kind {
        record_type::MMAP => Record::Mmap(mmap(bytes, header, stamp)?),
        record_type::MMAP2 => Record::Mmap(mmap2(bytes, header, stamp)?),
        record_type::COMM => Record::Comm(Comm {
            stamp,
            pid: bytes.i32()?,
            tid: bytes.i32()?,
            exec: header.misc & misc::COMM_EXEC != 0,
            name: string(bytes),
        }),
        record_type::FORK => Record::Fork(task(bytes, header, stamp)?),
        record_type::EXIT => Record::Exit(task(bytes, header, stamp)?),
        record_type::LOST => {
            bytes.u64()?;
            Record::Lost(lost(bytes, stamp)?)
        }
        record_type::LOST_SAMPLES => Record::LostSamples(lost(bytes, stamp)?),
        record_type::THROTTLE => Record::Throttle(throttle(bytes, stamp)?),
        record_type::UNTHROTTLE => Record::Unthrottle(throttle(bytes, stamp)?),
        record_type::READ => Record::Read(Read {
            stamp,
            pid: bytes.i32()?,
            tid: bytes.i32()?,
            values: ReadValues::parse(bytes, attr.read_format)?,
        }),
        record_type::SWITCH => Record::Switch(switch(header, stamp)),
        record_type::SWITCH_CPU_WIDE => Record::Switch(Switch {
            other: Some((bytes.i32()?, bytes.i32()?)),
            ..switch(header, stamp)
        }),
        record_type::NAMESPACES => Record::Namespaces(namespaces(bytes, stamp)?),
        record_type::KSYMBOL => Record::Ksymbol(ksymbol(bytes, stamp)?),
        record_type::CGROUP => Record::Cgroup(Cgroup {
            stamp,
            id: bytes.u64()?,
            path: string(bytes),
        }),
        kind => Record::Other { kind, stamp, body },
    })
}

/// Cuts the sample id off a record's end.
fn split_stamp<'a>(attr: &Attr, event: usize, body: &'a [u8]) -> Option<(Bytes<'a>, Stamp)> {
    let mut stamp = Stamp {
        event,
        ..Stamp::default()
    };
    if !sample_id_all(attr) {
        return Some((Bytes::new(body), stamp));
    }
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(stamp_size(attr))?)?;
    let mut trailer = Bytes::new(trailer);
    let has = |bit| attr.sample_type.contains(bit);
    if has(SampleType::TID) {
        stamp.pid = Some(trailer.i32()?);
        stamp.tid = Some(trailer.i32()?);
    }
    // Records synthesized by perf have the time 0.
    let time = trailer.u64_if(has(SampleType::TIME))?;
    stamp.time = time.filter(|&time| time != 0);
    stamp.id = trailer.u64_if(has(SampleType::ID))?;
    stamp.stream_id = trailer.u64_if(has(SampleType::STREAM_ID))?;
    // The CPU is the lower half of 8 bytes.
    stamp.cpu = trailer.u64_if(has(SampleType::CPU))?.map(|cpu| cpu as u32);
    let identifier = trailer.u64_if(has(SampleType::IDENTIFIER))?;
    stamp.id = stamp.id.or(identifier);
    Some((Bytes::new(body), stamp))
}

/// Bytes of the sample id that ends a record.
pub(crate) fn stamp_size(attr: &Attr) -> usize {
    let fields = SampleType::TID
        | SampleType::TIME
        | SampleType::ID
        | SampleType::STREAM_ID
        | SampleType::CPU
        | SampleType::IDENTIFIER;
    8 * (attr.sample_type & fields).0.count_ones() as usize
}

fn string<'a>(bytes: &mut Bytes<'a>) -> &'a OsStr {
    OsStr::from_bytes(bytes.string())
}

fn mmap<'a>(bytes: &mut Bytes<'a>, header: RecordHeader, stamp: Stamp) -> Option<Mmap<'a>> {
    Some(Mmap {
        stamp,
        mode: CpuMode::from_misc(header.misc),
        pid: bytes.i32()?,
        tid: bytes.i32()?,
        address: bytes.u64()?,
        length: bytes.u64()?,
        file_offset: bytes.u64()?,
        executable: header.misc & misc::MMAP_DATA == 0,
        protection: None,
        flags: None,
        build_id: None,
        identity: None,
        path: string(bytes),
    })
}

fn mmap2<'a>(bytes: &mut Bytes<'a>, header: RecordHeader, stamp: Stamp) -> Option<Mmap<'a>> {
    let (pid, tid) = (bytes.i32()?, bytes.i32()?);
    let (address, length, file_offset) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
    // 24 bytes: a build id, or device and inode.
    let union = bytes.take(24)?;
    let said = header.misc & misc::MMAP_BUILD_ID != 0;
    let build_id = said.then(|| mapped_build_id(union)).flatten();
    let identity = match build_id {
        Some(_) => None,
        None => file_identity(Bytes::new(union)),
    };
    let (protection, flags) = (bytes.u32()?, bytes.u32()?);
    Some(Mmap {
        stamp,
        mode: CpuMode::from_misc(header.misc),
        pid,
        tid,
        address,
        length,
        file_offset,
        executable: protection & PROT_EXEC != 0,
        protection: Some(protection),
        flags: Some(flags),
        build_id,
        identity,
        path: string(bytes),
    })
}

/// The build id in an MMAP2 record that is marked as having one: its size, three zeros, and the id
/// with zeros up to 20 bytes. While any session on the machine requests build ids, the kernel (seen
/// in 6.18) also marks the records of others, which contain device and inode instead.
fn mapped_build_id(union: &[u8]) -> Option<BuildId> {
    let (&[size, 0, 0, 0], id) = union.split_first_chunk()? else {
        return None;
    };
    let (id, padding) = id.split_at_checked(size.into())?;
    match padding.iter().all(|&byte| byte == 0) {
        true => BuildId::new(id),
        false => None,
    }
}

fn file_identity(mut bytes: Bytes<'_>) -> Option<FileIdentity> {
    let identity = FileIdentity {
        device: (bytes.u32()?, bytes.u32()?),
        inode: bytes.u64()?,
        generation: bytes.u64()?,
    };
    // Memory without a file has the inode 0.
    (identity.inode != 0).then_some(identity)
}

fn task(bytes: &mut Bytes<'_>, header: RecordHeader, stamp: Stamp) -> Option<Task> {
    let (pid, parent_pid) = (bytes.i32()?, bytes.i32()?);
    let (tid, parent_tid) = (bytes.i32()?, bytes.i32()?);
    Some(Task {
        stamp,
        pid,
        tid,
        parent_pid,
        parent_tid,
        time: bytes.u64()?,
        existed: header.misc & misc::FORK_EXEC != 0,
    })
}

fn lost(bytes: &mut Bytes<'_>, stamp: Stamp) -> Option<Lost> {
    Some(Lost {
        stamp,
        count: bytes.u64()?,
    })
}

fn throttle(bytes: &mut Bytes<'_>, stamp: Stamp) -> Option<Throttle> {
    Some(Throttle {
        stamp,
        time: bytes.u64()?,
        id: bytes.u64()?,
        stream_id: bytes.u64()?,
    })
}

fn switch(header: RecordHeader, stamp: Stamp) -> Switch {
    Switch {
        stamp,
        out: header.misc & misc::SWITCH_OUT != 0,
        preempted: header.misc & misc::SWITCH_OUT_PREEMPT != 0,
        other: None,
    }
}

fn namespaces<'a>(bytes: &mut Bytes<'a>, stamp: Stamp) -> Option<Namespaces<'a>> {
    let (pid, tid) = (bytes.i32()?, bytes.i32()?);
    let count = bytes.u64()?;
    Some(Namespaces {
        stamp,
        pid,
        tid,
        links: bytes.take_items(count, 16)?,
    })
}

fn ksymbol<'a>(bytes: &mut Bytes<'a>, stamp: Stamp) -> Option<Ksymbol<'a>> {
    // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
    const UNREGISTER: u16 = 1;
    Some(Ksymbol {
        stamp,
        address: bytes.u64()?,
        length: bytes.u32()?,
        kind: bytes.u16()?,
        unregistered: bytes.u16()? & UNREGISTER != 0,
        name: string(bytes),
    })
}
