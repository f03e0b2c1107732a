//! Samples.

use prof_model::{Pid, RegisterAbi, Tid, UserRegisters};

use super::{Open, put, put_fields};
use crate::abi::{BRANCH_COUNTERS, BRANCH_HW_INDEX, CpuMode, misc, record_type};
use crate::attr::Attr;
use crate::bits::SampleType;
use crate::error::EncodeError;
use crate::sample::{Branches, Sample, SampleDetails};

/// The values of a sample that [`sample`] can write. Fields that are not in the sample type are
/// left out; unknown ones in it are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewSample<'a> {
    /// The mode of the CPU.
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
    /// The weight of the sample.
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
    /// Registers at the interrupt.
    pub interrupt_registers: Option<UserRegisters>,
    /// Fields of special events.
    pub details: SampleDetails,
    /// A piece of the AUX area.
    pub aux: &'a [u8],
}

impl<'a> NewSample<'a> {
    /// The most addresses that a chain may have in a sample that holds it, a
    /// [`StackNote`](prof_model::StackNote) and any fields of fixed size: a record has 65,535
    /// bytes.
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
            interrupt_registers: sample.interrupt_registers(),
            details: sample.details,
            aux: sample.aux.unwrap_or(&[]),
            ..Self::default()
        }
    }
}

/// Appends PERF_RECORD_SAMPLE.
///
/// # Errors
/// It would be too long, or the attribute has unknown fields. Nothing is then appended.
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
        addresses(out, sample.callchain);
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

/// The fields after the user stack.
fn rare_fields(out: &mut Vec<u8>, attr: &Attr, sample: &NewSample<'_>) {
    let has = |bit| attr.sample_type.contains(bit);
    let SampleDetails {
        weight,
        data_src,
        transaction,
        phys_addr,
        cgroup,
        data_page_size,
        code_page_size,
    } = sample.details;
    let weighed = SampleType::WEIGHT | SampleType::WEIGHT_STRUCT;
    if attr.sample_type.intersects(weighed) {
        put(out, weight.unwrap_or(0));
    }
    let fields = [
        (SampleType::DATA_SRC, data_src.unwrap_or(0)),
        (SampleType::TRANSACTION, transaction.unwrap_or(0)),
    ];
    put_fields(out, attr, &fields);
    if has(SampleType::REGS_INTR) {
        registers(out, attr.sample_regs_intr, sample.interrupt_registers);
    }
    let fields = [
        (SampleType::PHYS_ADDR, phys_addr.unwrap_or(0)),
        (SampleType::CGROUP, cgroup.unwrap_or(0)),
        (SampleType::DATA_PAGE_SIZE, data_page_size.unwrap_or(0)),
        (SampleType::CODE_PAGE_SIZE, code_page_size.unwrap_or(0)),
    ];
    put_fields(out, attr, &fields);
    if has(SampleType::AUX) {
        let padded = sample.aux.len().next_multiple_of(8);
        put(out, padded as u64);
        out.extend(sample.aux);
        out.extend(std::iter::repeat_n(0, padded - sample.aux.len()));
    }
}

/// Chains can have thousands of addresses, so they are not written one by one.
fn addresses(out: &mut Vec<u8>, addresses: &[u64]) {
    let start = out.len();
    out.resize(start + 8 * addresses.len(), 0);
    let (slots, _) = out[start..].as_chunks_mut();
    for (slot, address) in slots.iter_mut().zip(addresses) {
        *slot = address.to_le_bytes();
    }
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
    let size = bytes.len().next_multiple_of(8);
    put(out, size as u64);
    if size == 0 {
        return;
    }
    out.extend(bytes);
    out.extend(std::iter::repeat_n(0, size - bytes.len()));
    put(out, bytes.len() as u64);
}
