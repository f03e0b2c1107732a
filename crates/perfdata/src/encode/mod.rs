//! Values to records, in the layout of an event's attribute.

mod sample;
mod shortened;

use std::os::unix::ffi::OsStrExt;

use crate::abi::{misc, record_type};
use crate::attr::Attr;
use crate::bits::SampleType;
use crate::error::EncodeError;
use crate::format::sample_id_all;
use crate::header::RecordHeader;
use crate::parse::PROT_EXEC;
use crate::record::{Comm, Lost, Mmap, Task};
use crate::stamp::Stamp;

pub use crate::note::stack_note;
pub use sample::{NewSample, sample};
pub use shortened::shortened;

/// Appends PERF_RECORD_MMAP2.
///
/// # Errors
/// The path is too long; nothing is appended then.
pub fn mmap2(out: &mut Vec<u8>, attr: &Attr, mmap: &Mmap<'_>) -> Result<(), EncodeError> {
    let mut bits = mmap.mode.to_misc();
    if mmap.build_id.is_some() {
        bits |= misc::MMAP_BUILD_ID;
    }
    if !mmap.executable {
        bits |= misc::MMAP_DATA;
    }
    let record = Open::new(out, record_type::MMAP2, bits);
    put_pair(record.out, mmap.pid, mmap.tid);
    for number in [mmap.address, mmap.length, mmap.file_offset] {
        put(record.out, number);
    }
    record.out.extend(file_or_build_id(mmap));
    let executable = if mmap.executable { PROT_EXEC } else { 0 };
    let protection = mmap.protection.unwrap_or(PROT_READ | executable);
    put_pair(
        record.out,
        protection as i32,
        mmap.flags.unwrap_or(0) as i32,
    );
    string(record.out, mmap.path.as_bytes());
    stamp(record.out, attr, &mmap.stamp);
    record.close()
}

/// Appends PERF_RECORD_COMM.
///
/// # Errors
/// The name is too long; nothing is appended then.
pub fn comm(out: &mut Vec<u8>, attr: &Attr, comm: &Comm<'_>) -> Result<(), EncodeError> {
    let exec = if comm.exec { misc::COMM_EXEC } else { 0 };
    let record = Open::new(out, record_type::COMM, exec);
    put_pair(record.out, comm.pid, comm.tid);
    string(record.out, comm.name.as_bytes());
    stamp(record.out, attr, &comm.stamp);
    record.close()
}

/// Appends PERF_RECORD_FORK.
pub fn fork(out: &mut Vec<u8>, attr: &Attr, fork: &Task) {
    task(out, attr, fork, record_type::FORK);
}

/// Appends PERF_RECORD_EXIT.
pub fn exit(out: &mut Vec<u8>, attr: &Attr, exit: &Task) {
    task(out, attr, exit, record_type::EXIT);
}

/// Appends PERF_RECORD_READ: the count of the stamp's event for the stamp's thread. The attribute's
/// counts must have ids, and no other fields.
pub fn read(out: &mut Vec<u8>, attr: &Attr, at: &Stamp, count: u64) {
    let record = Open::new(out, record_type::READ, 0);
    put_pair(record.out, at.pid.unwrap_or(0), at.tid.unwrap_or(0));
    put(record.out, count);
    put(record.out, at.id.unwrap_or(0));
    stamp(record.out, attr, at);
    record.close_short();
}

/// Appends PERF_RECORD_LOST.
pub fn lost(out: &mut Vec<u8>, attr: &Attr, lost: &Lost) {
    let record = Open::new(out, record_type::LOST, 0);
    put(record.out, lost.stamp.id.unwrap_or(0));
    put(record.out, lost.count);
    stamp(record.out, attr, &lost.stamp);
    record.close_short();
}

/// Appends PERF_RECORD_LOST_SAMPLES.
pub fn lost_samples(out: &mut Vec<u8>, attr: &Attr, lost: &Lost) {
    let record = Open::new(out, record_type::LOST_SAMPLES, 0);
    put(record.out, lost.count);
    stamp(record.out, attr, &lost.stamp);
    record.close_short();
}

/// Appends PERF_RECORD_FINISHED_ROUND: every ring was drained once since the one before.
pub fn finished_round(out: &mut Vec<u8>) {
    Open::new(out, record_type::FINISHED_ROUND, 0).close_short();
}

/// A record whose size is not known yet.
struct Open<'a> {
    out: &'a mut Vec<u8>,
    header: RecordHeader,
    start: usize,
}

impl<'a> Open<'a> {
    fn new(out: &'a mut Vec<u8>, kind: u32, misc: u16) -> Self {
        let start = out.len();
        out.resize(start + RecordHeader::SIZE, 0);
        let header = RecordHeader {
            kind,
            misc,
            size: 0,
        };
        Self { out, header, start }
    }

    fn close(mut self) -> Result<(), EncodeError> {
        let size = self.out.len() - self.start;
        let Ok(short) = u16::try_from(size) else {
            self.out.truncate(self.start);
            return Err(EncodeError::TooLong { size });
        };
        self.set_size(short);
        Ok(())
    }

    /// For records of a fixed size, which is small.
    fn close_short(mut self) {
        let size = self.out.len() - self.start;
        self.set_size(size as u16);
    }

    fn set_size(&mut self, size: u16) {
        self.header.size = size;
        let end = self.start + RecordHeader::SIZE;
        self.out[self.start..end].copy_from_slice(&self.header.to_bytes());
    }
}

/// The fields at the end of each record except samples.
fn stamp(out: &mut Vec<u8>, attr: &Attr, stamp: &Stamp) {
    if !sample_id_all(attr) {
        return;
    }
    let pid = stamp.pid.unwrap_or(0) as u32;
    let tid = stamp.tid.unwrap_or(0) as u32;
    let id = stamp.id.unwrap_or(0);
    let fields = [
        (SampleType::TID, u64::from(pid) | u64::from(tid) << 32),
        (SampleType::TIME, stamp.time.unwrap_or(0)),
        (SampleType::ID, id),
        (SampleType::STREAM_ID, stamp.stream_id.unwrap_or(0)),
        (SampleType::CPU, stamp.cpu.unwrap_or(0).into()),
        (SampleType::IDENTIFIER, id),
    ];
    put_fields(out, attr, &fields);
}

fn put_fields(out: &mut Vec<u8>, attr: &Attr, fields: &[(SampleType, u64)]) {
    for &(field, value) in fields {
        if attr.sample_type.contains(field) {
            put(out, value);
        }
    }
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn put_pair(out: &mut Vec<u8>, first: i32, second: i32) {
    out.extend(first.to_le_bytes());
    out.extend(second.to_le_bytes());
}

/// A string, padded with at least one zero byte so that the next field is aligned.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text);
    out.extend(std::iter::repeat_n(0, 8 - text.len() % 8));
}

/// `PROT_READ` of `mmap(2)`.
const PROT_READ: u32 = 1;

fn file_or_build_id(mmap: &Mmap<'_>) -> [u8; 24] {
    let mut union = [0; 24];
    if let Some(id) = mmap.build_id {
        let id = id.as_bytes();
        union[0] = id.len() as u8;
        union[4..4 + id.len()].copy_from_slice(id);
    } else if let Some(identity) = mmap.identity {
        union[..4].copy_from_slice(&identity.device.0.to_le_bytes());
        union[4..8].copy_from_slice(&identity.device.1.to_le_bytes());
        union[8..16].copy_from_slice(&identity.inode.to_le_bytes());
        union[16..].copy_from_slice(&identity.generation.to_le_bytes());
    }
    union
}

fn task(out: &mut Vec<u8>, attr: &Attr, task: &Task, kind: u32) {
    let existed = if task.existed { misc::FORK_EXEC } else { 0 };
    let record = Open::new(out, kind, existed);
    put_pair(record.out, task.pid, task.parent_pid);
    put_pair(record.out, task.tid, task.parent_tid);
    put(record.out, task.time);
    stamp(record.out, attr, &task.stamp);
    record.close_short();
}
