//! Values to records, in the layout that an event's attribute asks for.

use std::os::unix::ffi::OsStrExt;

use prof_model::{Pid, RegisterAbi, Tid, UserRegisters};

use crate::abi::{BRANCH_COUNTERS, BRANCH_HW_INDEX, CpuMode, SampleType, misc, record_type};
use crate::attr::Attr;
use crate::error::EncodeError;
use crate::format::sample_id_all;
use crate::header::RecordHeader;
use crate::parse::PROT_EXEC;
use crate::record::{Comm, Lost, Mmap, Stamp, Task};
use crate::sample::{Branches, Sample};

/// The values of a sample that [`sample`] can write. What the sample type doesn't ask for is left
/// out; what it asks for and isn't known is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewSample<'a> {
    /// Who ran.
    pub mode: CpuMode,
    /// Whether `ip` is exact.
    pub exact_ip: bool,
    /// Instruction pointer.
    pub ip: u64,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// Time in ns.
    pub time: u64,
    /// Data address.
    pub addr: u64,
    /// Id of the event.
    pub id: u64,
    /// Id that inherited events don't share.
    pub stream_id: u64,
    /// CPU number.
    pub cpu: u32,
    /// What the sample stands for.
    pub period: u64,
    /// Counter values as a record has them.
    pub read: &'a [u8],
    /// The call chain with its markers, innermost first.
    pub callchain: &'a [u64],
    /// Opaque bytes, padded with zeros as need be.
    pub raw: &'a [u8],
    /// The last branches.
    pub branches: Option<Branches<'a>>,
    /// User registers.
    pub user_registers: Option<UserRegisters>,
    /// Copied part of the user stack.
    pub user_stack: &'a [u8],
    /// Cost of the sampled instruction.
    pub weight: u64,
    /// `union perf_mem_data_src`.
    pub data_src: u64,
    /// `PERF_TXN_` bits.
    pub transaction: u64,
    /// Registers at the interrupt.
    pub interrupt_registers: Option<UserRegisters>,
    /// Physical address of the data.
    pub phys_addr: u64,
    /// Control group id.
    pub cgroup: u64,
    /// Page size at the data address.
    pub data_page_size: u64,
    /// Page size at the instruction pointer.
    pub code_page_size: u64,
    /// A piece of the AUX area.
    pub aux: &'a [u8],
}

impl<'a> NewSample<'a> {
    /// The most addresses that a chain may have in a sample that holds it, a
    /// [`StackNote`](crate::StackNote) and any fields of fixed size: a record has 65,535 bytes.
    pub const MAX_CHAIN: usize = 8_100;

    /// All of `sample` except its chain, raw bytes, registers and stack.
    pub fn without_stack(sample: &Sample<'a>) -> Self {
        Self {
            mode: sample.mode,
            exact_ip: sample.exact_ip,
            ip: sample.ip,
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time.unwrap_or(0),
            addr: sample.addr.unwrap_or(0),
            id: sample.id.unwrap_or(0),
            stream_id: sample.stream_id.unwrap_or(0),
            cpu: sample.cpu.unwrap_or(0),
            period: sample.period,
            read: sample.read.map_or(&[], |read| read.bytes),
            branches: sample.branches,
            weight: sample.weight.unwrap_or(0),
            data_src: sample.data_src.unwrap_or(0),
            transaction: sample.transaction.unwrap_or(0),
            interrupt_registers: sample.interrupt_registers(),
            phys_addr: sample.phys_addr.unwrap_or(0),
            cgroup: sample.cgroup.unwrap_or(0),
            data_page_size: sample.data_page_size.unwrap_or(0),
            code_page_size: sample.code_page_size.unwrap_or(0),
            aux: sample.aux.unwrap_or(&[]),
            ..Self::default()
        }
    }
}

/// Appends PERF_RECORD_SAMPLE.
///
/// # Errors
/// It would be too long, or the attribute asks for fields that are not known. Nothing is appended
/// then.
pub fn sample(out: &mut Vec<u8>, attr: &Attr, sample: &NewSample<'_>) -> Result<(), EncodeError> {
    let unknown = attr.sample_type.0 & !SampleType::ALL.0;
    if unknown != 0 {
        return Err(EncodeError::Unsupported { fields: unknown });
    }
    let exact = if sample.exact_ip { misc::EXACT_IP } else { 0 };
    let record = Open::new(out, record_type::SAMPLE, sample.mode.to_misc() | exact);
    fixed_fields(record.out, attr, sample);
    variable_fields(record.out, attr, sample);
    rare_fields(record.out, attr, sample);
    record.close()
}

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

fn fixed_fields(out: &mut Vec<u8>, attr: &Attr, sample: &NewSample<'_>) {
    let two = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
    let fields = [
        (SampleType::IDENTIFIER, sample.id),
        (SampleType::IP, sample.ip),
        (SampleType::TID, two(sample.pid, sample.tid)),
        (SampleType::TIME, sample.time),
        (SampleType::ADDR, sample.addr),
        (SampleType::ID, sample.id),
        (SampleType::STREAM_ID, sample.stream_id),
        (SampleType::CPU, sample.cpu.into()),
        (SampleType::PERIOD, sample.period),
    ];
    put_fields(out, attr, &fields);
}

fn variable_fields(out: &mut Vec<u8>, attr: &Attr, sample: &NewSample<'_>) {
    let has = |bit| attr.sample_type.contains(bit);
    if has(SampleType::READ) {
        out.extend(sample.read);
    }
    if has(SampleType::CALLCHAIN) {
        put(out, sample.callchain.len() as u64);
        let addresses = sample.callchain.iter();
        out.extend(addresses.flat_map(|address| address.to_le_bytes()));
    }
    if has(SampleType::RAW) {
        raw(out, sample.raw);
    }
    if has(SampleType::BRANCH_STACK) {
        branches(out, attr, sample.branches);
    }
    if has(SampleType::REGS_USER) {
        registers(out, attr.sample_regs_user, sample.user_registers);
    }
    if has(SampleType::STACK_USER) {
        stack(out, sample.user_stack);
    }
}

/// What comes after the user stack.
fn rare_fields(out: &mut Vec<u8>, attr: &Attr, sample: &NewSample<'_>) {
    let has = |bit| attr.sample_type.contains(bit);
    if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
        put(out, sample.weight);
    }
    let fields = [
        (SampleType::DATA_SRC, sample.data_src),
        (SampleType::TRANSACTION, sample.transaction),
    ];
    put_fields(out, attr, &fields);
    if has(SampleType::REGS_INTR) {
        registers(out, attr.sample_regs_intr, sample.interrupt_registers);
    }
    let fields = [
        (SampleType::PHYS_ADDR, sample.phys_addr),
        (SampleType::CGROUP, sample.cgroup),
        (SampleType::DATA_PAGE_SIZE, sample.data_page_size),
        (SampleType::CODE_PAGE_SIZE, sample.code_page_size),
    ];
    put_fields(out, attr, &fields);
    if has(SampleType::AUX) {
        let padded = sample.aux.len().next_multiple_of(8);
        put(out, padded as u64);
        out.extend(sample.aux);
        out.extend(std::iter::repeat_n(0, padded - sample.aux.len()));
    }
}

/// What ends each record but samples.
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

/// A string, filled up with at least one zero byte so that what follows stays aligned.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text);
    out.extend(std::iter::repeat_n(0, 8 - text.len() % 8));
}

/// The size has 4 bytes, and both together a multiple of 8.
fn raw(out: &mut Vec<u8>, bytes: &[u8]) {
    let padded = (4 + bytes.len()).next_multiple_of(8) - 4;
    out.extend((padded as u32).to_le_bytes());
    out.extend(bytes);
    out.extend(std::iter::repeat_n(0, padded - bytes.len()));
}

fn branches(out: &mut Vec<u8>, attr: &Attr, branches: Option<Branches<'_>>) {
    let entries = branches.map_or(&[][..], |branches| branches.entries);
    put(out, (entries.len() / Branches::ENTRY) as u64);
    if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
        let unknown = u64::MAX;
        let index = branches.and_then(|branches| branches.hardware_index);
        put(out, index.unwrap_or(unknown));
    }
    out.extend(entries);
    if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
        let mut counters = branches
            .map_or(&[][..], |branches| branches.counters)
            .to_vec();
        counters.resize(entries.len() / Branches::ENTRY * 8, 0);
        out.extend(counters);
    }
}

fn registers(out: &mut Vec<u8>, mask: u64, registers: Option<UserRegisters>) {
    // enum perf_sample_regs_abi
    let Some(registers) = registers else {
        return put(out, 0);
    };
    put(
        out,
        match registers.abi() {
            RegisterAbi::Bits32 => 1,
            RegisterAbi::Bits64 => 2,
        },
    );
    for number in (0..u64::BITS).filter(|number| mask >> number & 1 != 0) {
        put(out, registers.get(number).unwrap_or(0));
    }
}

fn stack(out: &mut Vec<u8>, bytes: &[u8]) {
    let room = bytes.len().next_multiple_of(8);
    put(out, room as u64);
    if room == 0 {
        return;
    }
    out.extend(bytes);
    out.extend(std::iter::repeat_n(0, room - bytes.len()));
    put(out, bytes.len() as u64);
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
