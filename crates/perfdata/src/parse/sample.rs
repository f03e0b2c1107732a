//! Bytes to a sample: the fields in the order of the kernel's `perf_output_sample`.

use crate::abi::{BRANCH_COUNTERS, BRANCH_HW_INDEX, CpuMode, misc};
use crate::attr::Attr;
use crate::bits::SampleType;
use crate::bytes::Bytes;
use crate::header::RecordHeader;
use crate::read::ReadValues;
use crate::sample::{Branches, Callchain, Registers, Sample, SampleDetails, UserStack};

pub(crate) fn parse_sample<'a>(
    attr: &Attr,
    event: usize,
    header: RecordHeader,
    body: &'a [u8],
) -> Option<Sample<'a>> {
    let mut bytes = Bytes::new(body);
    let mut sample = Sample::empty(event, header);
    fixed_fields(attr, &mut bytes, &mut sample)?;
    let has = |bit| attr.sample_type.contains(bit);
    if has(SampleType::READ) {
        sample.read = Some(ReadValues::parse(&mut bytes, attr.read_format)?);
    }
    if has(SampleType::CALLCHAIN) {
        let count = bytes.u64()?;
        sample.callchain = Callchain(bytes.take_items(count, 8)?);
    }
    if has(SampleType::RAW) {
        let size = bytes.u32()?;
        sample.raw = Some(bytes.take_items(size.into(), 1)?);
    }
    if has(SampleType::BRANCH_STACK) {
        sample.branches = Some(branches(attr, &mut bytes)?);
    }
    if has(SampleType::REGS_USER) {
        sample.user_registers = registers(attr.sample_regs_user, &mut bytes)?;
    }
    sample.user_stack_at = RecordHeader::SIZE + body.len() - bytes.rest().len();
    if has(SampleType::STACK_USER) {
        sample.user_stack = user_stack(&mut bytes)?;
    }
    rare_fields(attr, &mut bytes, &mut sample)?;
    Some(sample)
}

/// The fields of 8 bytes each that come first.
fn fixed_fields(attr: &Attr, bytes: &mut Bytes<'_>, sample: &mut Sample<'_>) -> Option<()> {
    let has = |bit| attr.sample_type.contains(bit);
    let identifier = bytes.u64_if(has(SampleType::IDENTIFIER))?;
    sample.ip = bytes.u64_if(has(SampleType::IP))?.unwrap_or(0);
    if has(SampleType::TID) {
        sample.pid = bytes.i32()?;
        sample.tid = bytes.i32()?;
    }
    sample.time = bytes.u64_if(has(SampleType::TIME))?;
    sample.addr = bytes.u64_if(has(SampleType::ADDR))?;
    sample.id = bytes.u64_if(has(SampleType::ID))?.or(identifier);
    sample.stream_id = bytes.u64_if(has(SampleType::STREAM_ID))?;
    // The CPU is the lower half of 8 bytes.
    sample.cpu = bytes.u64_if(has(SampleType::CPU))?.map(|cpu| cpu as u32);
    sample.period = bytes
        .u64_if(has(SampleType::PERIOD))?
        .or(attr.fixed_period())
        .unwrap_or(1);
    Some(())
}

/// The fields after the user stack.
fn rare_fields<'a>(attr: &Attr, bytes: &mut Bytes<'a>, sample: &mut Sample<'a>) -> Option<()> {
    let has = |bit| attr.sample_type.contains(bit);
    let weighed = SampleType::WEIGHT | SampleType::WEIGHT_STRUCT;
    sample.details.weight = bytes.u64_if(attr.sample_type.intersects(weighed))?;
    sample.details.data_src = bytes.u64_if(has(SampleType::DATA_SRC))?;
    sample.details.transaction = bytes.u64_if(has(SampleType::TRANSACTION))?;
    if has(SampleType::REGS_INTR) {
        sample.interrupt_registers = registers(attr.sample_regs_intr, bytes)?;
    }
    sample.details.phys_addr = bytes.u64_if(has(SampleType::PHYS_ADDR))?;
    sample.details.cgroup = bytes.u64_if(has(SampleType::CGROUP))?;
    sample.details.data_page_size = bytes.u64_if(has(SampleType::DATA_PAGE_SIZE))?;
    sample.details.code_page_size = bytes.u64_if(has(SampleType::CODE_PAGE_SIZE))?;
    if has(SampleType::AUX) {
        let size = bytes.u64()?;
        sample.aux = Some(bytes.take_items(size, 1)?);
    }
    Some(())
}

fn branches<'a>(attr: &Attr, bytes: &mut Bytes<'a>) -> Option<Branches<'a>> {
    let count = bytes.u64()?;
    let has = |bit| attr.branch_sample_type & bit != 0;
    Some(Branches {
        hardware_index: bytes.u64_if(has(BRANCH_HW_INDEX))?,
        entries: bytes.take_items(count, Branches::ENTRY)?,
        counters: match has(BRANCH_COUNTERS) {
            true => bytes.take_items(count, 8)?,
            false => &[],
        },
    })
}

fn registers<'a>(mask: u64, bytes: &mut Bytes<'a>) -> Option<Registers<'a>> {
    let abi = bytes.u64()?;
    // PERF_SAMPLE_REGS_ABI_NONE: no registers follow.
    let count = if abi == 0 { 0 } else { mask.count_ones() };
    Some(Registers {
        abi,
        mask,
        values: bytes.take_items(count.into(), 8)?,
    })
}

/// The outer `Option` is `None` if the bytes are too few, the inner one if there is no stack.
fn user_stack<'a>(bytes: &mut Bytes<'a>) -> Option<Option<UserStack<'a>>> {
    let capacity = bytes.u64()?;
    if capacity == 0 {
        // Without a dump there is no dyn_size either.
        return Some(None);
    }
    let copied = bytes.take_items(capacity, 1)?;
    let used = usize::try_from(bytes.u64()?).unwrap_or(usize::MAX);
    Some(Some(UserStack {
        bytes: copied.get(..used).unwrap_or(copied),
        capacity: copied.len(),
    }))
}

impl Sample<'_> {
    fn empty(event: usize, header: RecordHeader) -> Self {
        Self {
            event,
            mode: CpuMode::from_misc(header.misc),
            exact_ip: header.misc & misc::EXACT_IP != 0,
            ip: 0,
            pid: -1,
            tid: -1,
            time: None,
            addr: None,
            id: None,
            stream_id: None,
            cpu: None,
            period: 1,
            read: None,
            callchain: Callchain::default(),
            raw: None,
            branches: None,
            user_registers: Registers::default(),
            user_stack: None,
            user_stack_at: 0,
            interrupt_registers: Registers::default(),
            details: SampleDetails::default(),
            aux: None,
        }
    }
}
