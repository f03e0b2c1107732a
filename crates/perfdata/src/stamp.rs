//! The stamps of records: event, time, thread and CPU.

use prof_model::{Pid, Tid};

/// The event, time, thread and CPU of a record: `struct sample_id`, which ends each record of an
/// event opened with [`AttrFlags::SAMPLE_ID_ALL`](crate::AttrFlags::SAMPLE_ID_ALL).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The index of its event in the recording.
    pub event: usize,
    /// The process, if recorded. The kernel says -1 for one that is ending.
    pub pid: Option<Pid>,
    /// The thread, if recorded.
    pub tid: Option<Tid>,
    /// Time in ns of the recording's clock, if recorded. Missing in perf's records of processes
    /// that ran before it began.
    pub time: Option<u64>,
    /// Id of the event, if recorded.
    pub id: Option<u64>,
    /// Id that inherited events don't share, if recorded.
    pub stream_id: Option<u64>,
    /// CPU number, if recorded.
    pub cpu: Option<u32>,
}
