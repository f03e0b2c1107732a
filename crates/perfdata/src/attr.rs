//! `struct perf_event_attr`: how an event was opened.

use crate::bits::{AttrFlags, ReadFormat, SampleType};
use crate::bytes::Bytes;
use crate::error::Error;

/// How an event was opened (`struct perf_event_attr`), as far as reading its records needs it.
///
/// Parsing the result of [`to_bytes`](Self::to_bytes) gives the same value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Kind of event: `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`, .. or a PMU's number.
    pub kind: u32,
    /// The event of that kind.
    pub config: u64,
    /// Sampling period, or frequency in Hz with [`AttrFlags::FREQ`].
    pub period_or_frequency: u64,
    /// The fields of a sample.
    pub sample_type: SampleType,
    /// The fields of counter values.
    pub read_format: ReadFormat,
    /// The bit field.
    pub flags: AttrFlags,
    /// `wakeup_events` or `wakeup_watermark`.
    pub wakeup: u32,
    /// `bp_type`.
    pub breakpoint_type: u32,
    /// `config1` (also `bp_addr`, `uprobe_path`).
    pub config1: u64,
    /// `config2` (also `bp_len`, `probe_offset`).
    pub config2: u64,
    /// `branch_sample_type`.
    pub branch_sample_type: u64,
    /// Which user registers a sample holds.
    pub sample_regs_user: u64,
    /// How many bytes of user stack a sample holds at most.
    pub sample_stack_user: u32,
    /// Clock of the time stamps, with [`AttrFlags::USE_CLOCKID`].
    pub clockid: i32,
    /// Which registers at the interrupt a sample holds.
    pub sample_regs_intr: u64,
    /// `aux_watermark`.
    pub aux_watermark: u32,
    /// How many frames a call chain has at most.
    pub sample_max_stack: u16,
    /// `aux_sample_size`.
    pub aux_sample_size: u32,
    /// `sig_data`.
    pub sig_data: u64,
}

impl Attr {
    /// Size of the struct as files hold it: `PERF_ATTR_SIZE_VER7`, the largest that perf 6.1
    /// accepts.
    pub const SIZE: usize = 128;
    /// Size of the first published struct, `PERF_ATTR_SIZE_VER0`.
    pub(crate) const MIN_SIZE: usize = 64;

    /// Decodes a struct of any published size; fields that older ones lack are zero, those of newer
    /// ones beyond [`SIZE`](Self::SIZE) are ignored.
    ///
    /// # Errors
    /// There are fewer bytes than the first published struct has, or than its own size field says.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let short = || Error::Attr { size: bytes.len() };
        let size = bytes
            .get(4..8)
            .and_then(|size| size.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or_else(short)? as usize;
        // Zero stands for the first published size.
        let size = if size == 0 { Self::MIN_SIZE } else { size };
        if size < Self::MIN_SIZE || size > bytes.len() {
            return Err(short());
        }
        let mut whole = [0; Self::SIZE];
        let known = size.min(Self::SIZE);
        whole[..known].copy_from_slice(&bytes[..known]);
        Self::decode(&whole).ok_or_else(short)
    }

    fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let kind = bytes.u32()?;
        bytes.u32()?;
        Some(Self {
            kind,
            config: bytes.u64()?,
            period_or_frequency: bytes.u64()?,
            sample_type: SampleType(bytes.u64()?),
            read_format: ReadFormat(bytes.u64()?),
            flags: AttrFlags(bytes.u64()?),
            wakeup: bytes.u32()?,
            breakpoint_type: bytes.u32()?,
            config1: bytes.u64()?,
            config2: bytes.u64()?,
            branch_sample_type: bytes.u64()?,
            sample_regs_user: bytes.u64()?,
            sample_stack_user: bytes.u32()?,
            clockid: bytes.u32()? as i32,
            sample_regs_intr: bytes.u64()?,
            aux_watermark: bytes.u32()?,
            sample_max_stack: bytes.u16()?,
            aux_sample_size: {
                bytes.u16()?;
                bytes.u32()?
            },
            sig_data: {
                bytes.u32()?;
                bytes.u64()?
            },
        })
    }

    /// The struct as the kernel and files have it, with its size field set.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        put(0, &self.kind.to_le_bytes());
        put(4, &(Self::SIZE as u32).to_le_bytes());
        put(8, &self.config.to_le_bytes());
        put(16, &self.period_or_frequency.to_le_bytes());
        put(24, &self.sample_type.0.to_le_bytes());
        put(32, &self.read_format.0.to_le_bytes());
        put(40, &self.flags.0.to_le_bytes());
        put(48, &self.wakeup.to_le_bytes());
        put(52, &self.breakpoint_type.to_le_bytes());
        put(56, &self.config1.to_le_bytes());
        put(64, &self.config2.to_le_bytes());
        put(72, &self.branch_sample_type.to_le_bytes());
        put(80, &self.sample_regs_user.to_le_bytes());
        put(88, &self.sample_stack_user.to_le_bytes());
        put(92, &self.clockid.to_le_bytes());
        put(96, &self.sample_regs_intr.to_le_bytes());
        put(104, &self.aux_watermark.to_le_bytes());
        put(108, &self.sample_max_stack.to_le_bytes());
        put(112, &self.aux_sample_size.to_le_bytes());
        put(120, &self.sig_data.to_le_bytes());
        bytes
    }

    /// The period that every sample has, unless the event was opened with a frequency.
    pub fn fixed_period(&self) -> Option<u64> {
        (!self.flags.contains(AttrFlags::FREQ)).then_some(self.period_or_frequency)
    }

    /// The sampling frequency in Hz, if the event was opened with one.
    pub fn frequency(&self) -> Option<u64> {
        self.flags
            .contains(AttrFlags::FREQ)
            .then_some(self.period_or_frequency)
    }

    /// perf's name for events of this kind, for files that do not name them: `cpu-clock:u`.
    #[must_use]
    pub(crate) fn generic_name(&self) -> String {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 12] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
            "cgroup-switches",
        ];
        let numbered = |names: &[&'static str]| {
            let number = usize::try_from(self.config).ok()?;
            names.get(number).copied()
        };
        // enum perf_type_id
        let name = match self.kind {
            0 => numbered(&HARDWARE),
            1 => numbered(&SOFTWARE),
            2 => Some("tracepoint"),
            5 => Some("breakpoint"),
            _ => None,
        };
        let modifier = match (
            self.flags.contains(AttrFlags::EXCLUDE_USER),
            self.flags.contains(AttrFlags::EXCLUDE_KERNEL),
        ) {
            (false, true) => ":u",
            (true, false) => ":k",
            _ => "",
        };
        match name {
            Some(name) => format!("{name}{modifier}"),
            None => format!("event {}/{:#x}{modifier}", self.kind, self.config),
        }
    }

    /// The attribute that describes samples whose registers and stack were replaced by a call chain
    /// and a [`StackNote`](prof_model::StackNote): everything else, and so every other record, is
    /// unchanged.
    #[must_use]
    pub fn unwound(&self) -> Self {
        let dumps = SampleType::REGS_USER | SampleType::STACK_USER;
        Self {
            sample_type: (self.sample_type & !dumps) | SampleType::CALLCHAIN | SampleType::RAW,
            flags: self.flags & !AttrFlags::EXCLUDE_CALLCHAIN_USER,
            sample_regs_user: 0,
            sample_stack_user: 0,
            ..self.clone()
        }
    }
}

/// One event of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDescription {
    /// How it was opened.
    pub attr: Attr,
    /// Its name: `cycles`, `cpu-clock:u`; empty if the file has none.
    pub name: String,
    /// The ids that the kernel gave to it, one for each CPU it was opened on.
    pub ids: Vec<u64>,
}
