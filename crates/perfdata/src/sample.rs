//! PERF_RECORD_SAMPLE as a value. Fields that are expensive to decode (registers, chains, branches)
//! stay bytes until they are used.

use prof_model::{Pid, RegisterAbi, StackNote, Tid, UserRegisters};

use crate::abi::CpuMode;
use crate::note;
use crate::read::ReadValues;
use crate::stamp::Stamp;

/// One sample. Optional fields are those that the event's sample type may lack.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The index of its event in the recording.
    pub event: usize,
    /// The mode of the CPU.
    pub mode: CpuMode,
    /// Whether `ip` is exactly the instruction that caused the event.
    pub exact_ip: bool,
    /// Instruction pointer; zero if not recorded.
    pub ip: u64,
    /// The process; -1 if not recorded, or if it is ending.
    pub pid: Pid,
    /// The thread; -1 if not recorded, or if it is ending.
    pub tid: Tid,
    /// Time in ns of the recording's clock.
    pub time: Option<u64>,
    /// The data address, or the event's equivalent.
    pub addr: Option<u64>,
    /// Id of the event.
    pub id: Option<u64>,
    /// Id that inherited events don't share.
    pub stream_id: Option<u64>,
    /// CPU number.
    pub cpu: Option<u32>,
    /// The weight of the sample, in the event's unit: the recorded period, else that of the event,
    /// else 1.
    pub period: u64,
    /// Counter values.
    pub read: Option<ReadValues<'a>>,
    /// The call chain, innermost first, with the markers of [`context`](crate::context) in it.
    pub callchain: Callchain<'a>,
    /// Opaque bytes, padding included.
    pub raw: Option<&'a [u8]>,
    /// The last branches.
    pub branches: Option<Branches<'a>>,
    pub(crate) user_registers: Registers<'a>,
    /// The copied part of the user stack.
    pub user_stack: Option<UserStack<'a>>,
    /// Offset of the stack's size from the record's start.
    pub(crate) user_stack_at: usize,
    pub(crate) interrupt_registers: Registers<'a>,
    /// Fields of special events.
    pub details: SampleDetails,
    /// A piece of the AUX area.
    pub aux: Option<&'a [u8]>,
}

/// Fields of special events, mainly those of `perf mem`. prof requests none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleDetails {
    /// Cost of the sampled instruction (`union perf_sample_weight`, as one number).
    pub weight: Option<u64>,
    /// `union perf_mem_data_src`.
    pub data_src: Option<u64>,
    /// `PERF_TXN_` bits.
    pub transaction: Option<u64>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// Control group id.
    pub cgroup: Option<u64>,
    /// Page size at the data address.
    pub data_page_size: Option<u64>,
    /// Page size at the instruction pointer.
    pub code_page_size: Option<u64>,
}

impl Sample<'_> {
    /// The user registers; `None` if not recorded, or if there are none (a kernel thread).
    pub fn user_registers(&self) -> Option<UserRegisters> {
        self.user_registers.decode()
    }

    /// The registers at the interrupt.
    pub fn interrupt_registers(&self) -> Option<UserRegisters> {
        self.interrupt_registers.decode()
    }

    /// prof's note on the stack; `None` in recordings of other programs.
    pub fn stack_note(&self) -> Option<StackNote> {
        note::parse(self.raw?)
    }

    /// Its stamp.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            event: self.event,
            pid: Some(self.pid),
            tid: Some(self.tid),
            time: self.time,
            id: self.id,
            stream_id: self.stream_id,
            cpu: self.cpu,
        }
    }
}

/// A copied piece of a user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// The bytes that were really copied (`dyn_size`), from the stack pointer up.
    pub bytes: &'a [u8],
    /// The size of the dump in this sample. If as many bytes were copied, the stack may be deeper.
    pub capacity: usize,
}

impl UserStack<'_> {
    /// Whether the dump is full, so that the stack may be deeper.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.capacity
    }
}

/// The addresses of a call chain, markers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callchain<'a>(pub(crate) &'a [u8]);

impl Iterator for Callchain<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (&address, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(address))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.0.len() / 8;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Callchain<'_> {}

impl DoubleEndedIterator for Callchain<'_> {
    fn next_back(&mut self) -> Option<u64> {
        let (rest, &address) = self.0.split_last_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(address))
    }
}

/// The last branches of a CPU, most recent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches<'a> {
    /// The position of the most recent one in the hardware's buffer, if recorded; -1 if unknown.
    pub hardware_index: Option<u64>,
    pub(crate) entries: &'a [u8],
    /// Event counts of each branch, as the hardware has them.
    pub(crate) counters: &'a [u8],
}

/// One branch that was taken (`struct perf_branch_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// Prediction, transaction, cycles and type bits.
    pub flags: u64,
}

impl<'a> Branches<'a> {
    /// Bytes of one entry.
    pub(crate) const ENTRY: usize = 24;

    /// The branches.
    pub fn iter(&self) -> impl Iterator<Item = Branch> + 'a {
        self.entries.chunks_exact(Self::ENTRY).filter_map(|entry| {
            let mut numbers = Callchain(entry);
            Some(Branch {
                from: numbers.next()?,
                to: numbers.next()?,
                flags: numbers.next()?,
            })
        })
    }
}

/// Registers that are not decoded yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers<'a> {
    pub(crate) abi: u64,
    pub(crate) mask: u64,
    pub(crate) values: &'a [u8],
}

impl Registers<'_> {
    fn decode(&self) -> Option<UserRegisters> {
        // enum perf_sample_regs_abi
        let abi = match self.abi {
            1 => RegisterAbi::Bits32,
            2 => RegisterAbi::Bits64,
            _ => return None,
        };
        UserRegisters::new(abi, self.mask, Callchain(self.values))
    }
}
