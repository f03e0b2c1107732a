//! The kernel's records of threads that start, get a name, and end.

use perf_event_open_sys::bindings as sys;
use prof_model::{Pid, Tid};

use super::raw::RawCount;

/// The records that matter here (enum perf_event_type in include/uapi/linux/perf_event.h).
pub(super) enum Record {
    /// pid, tid, { value, time_enabled, time_running, id }
    Read {
        pid: Pid,
        tid: Tid,
        id: u64,
        count: RawCount,
    },
    /// pid, tid, name
    Comm { pid: Pid, tid: Tid, name: String },
    /// pid, ppid, tid, ptid, time
    Fork { pid: Pid, tid: Tid, parent: Tid },
    /// As a fork.
    Exit { pid: Pid, tid: Tid },
    /// id, lost
    Lost(u64),
}

impl Record {
    /// `None` for any other record, or a damaged one.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        const BODY: usize = 8;
        let word = |at: usize| {
            Some(u32::from_ne_bytes(
                record.get(BODY + at..BODY + at + 4)?.try_into().ok()?,
            ))
        };
        let long = |at: usize| {
            Some(u64::from_ne_bytes(
                record.get(BODY + at..BODY + at + 8)?.try_into().ok()?,
            ))
        };
        let id = |at: usize| Some(word(at)? as i32);
        let kind = u32::from_ne_bytes(record.get(..4)?.try_into().ok()?);
        match kind {
            sys::PERF_RECORD_READ => Some(Self::Read {
                pid: id(0)?,
                tid: id(4)?,
                count: RawCount {
                    value: long(8)?,
                    enabled: long(16)?,
                    running: long(24)?,
                },
                id: long(32)?,
            }),
            sys::PERF_RECORD_COMM => {
                let name = record.get(BODY + 8..)?;
                let end = name
                    .iter()
                    .position(|&byte| byte == 0)
                    .unwrap_or(name.len());
                let name = String::from_utf8_lossy(name.get(..end)?).into_owned();
                Some(Self::Comm {
                    pid: id(0)?,
                    tid: id(4)?,
                    name,
                })
            }
            sys::PERF_RECORD_FORK => Some(Self::Fork {
                pid: id(0)?,
                tid: id(8)?,
                parent: id(12)?,
            }),
            sys::PERF_RECORD_EXIT => Some(Self::Exit {
                pid: id(0)?,
                tid: id(8)?,
            }),
            sys::PERF_RECORD_LOST => Some(Self::Lost(long(8)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_records_are_no_records() {
        let mut record = vec![0_u8; 48];
        record[..4].copy_from_slice(&sys::PERF_RECORD_READ.to_ne_bytes());
        assert!(matches!(Record::parse(&record), Some(Record::Read { .. })));
        for length in 0..48 {
            assert!(Record::parse(&record[..length]).is_none(), "{length}");
        }
        record[0] = 200;
        assert!(Record::parse(&record).is_none());
    }
}
