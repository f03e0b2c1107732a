//! Records as values. Strings and lists point into the record's bytes.

use std::ffi::OsStr;

use prof_model::{BuildId, FileIdentity, Pid, Tid};

use crate::abi::CpuMode;
use crate::read::ReadValues;
use crate::sample::Sample;
use crate::stamp::Stamp;

/// One record, from a ring or from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all records are samples, and none is kept"
)]
pub enum Record<'a> {
    /// PERF_RECORD_SAMPLE
    Sample(Sample<'a>),
    /// PERF_RECORD_MMAP and PERF_RECORD_MMAP2
    Mmap(Mmap<'a>),
    /// PERF_RECORD_COMM
    Comm(Comm<'a>),
    /// PERF_RECORD_FORK
    Fork(Task),
    /// PERF_RECORD_EXIT
    Exit(Task),
    /// PERF_RECORD_LOST: records that found the ring full
    Lost(Lost),
    /// PERF_RECORD_LOST_SAMPLES: samples that were dropped before they reached the ring
    LostSamples(Lost),
    /// PERF_RECORD_THROTTLE
    Throttle(Throttle),
    /// PERF_RECORD_UNTHROTTLE
    Unthrottle(Throttle),
    /// PERF_RECORD_READ
    Read(Read<'a>),
    /// PERF_RECORD_SWITCH and PERF_RECORD_SWITCH_CPU_WIDE
    Switch(Switch),
    /// PERF_RECORD_NAMESPACES
    Namespaces(Namespaces<'a>),
    /// PERF_RECORD_KSYMBOL
    Ksymbol(Ksymbol<'a>),
    /// PERF_RECORD_CGROUP
    Cgroup(Cgroup<'a>),
    /// PERF_RECORD_FINISHED_ROUND: every ring was drained once since the one before. A
    /// [`Recording`](crate::Recording) orders by it and doesn't hand it out.
    FinishedRound,
    /// Any other record.
    Other {
        /// Its type ([`record_type`](crate::record_type)).
        kind: u32,
        /// The stamp, if it is the kernel's.
        stamp: Stamp,
        /// The bytes after its header, including a sample id at the end.
        body: &'a [u8],
    },
    /// An invalid record of a file.
    Damaged,
}

impl Record<'_> {
    /// Its stamp; the default (nothing known) for perf's own records.
    pub fn stamp(&self) -> Stamp {
        match self {
            Self::Sample(sample) => sample.stamp(),
            Self::Mmap(record) => record.stamp,
            Self::Comm(record) => record.stamp,
            Self::Fork(record) | Self::Exit(record) => record.stamp,
            Self::Lost(record) | Self::LostSamples(record) => record.stamp,
            Self::Throttle(record) | Self::Unthrottle(record) => record.stamp,
            Self::Read(record) => record.stamp,
            Self::Switch(record) => record.stamp,
            Self::Namespaces(record) => record.stamp,
            Self::Ksymbol(record) => record.stamp,
            Self::Cgroup(record) => record.stamp,
            Self::Other { stamp, .. } => *stamp,
            Self::FinishedRound | Self::Damaged => Stamp::default(),
        }
    }
}

/// Something was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// User or kernel, of this machine or of a guest.
    pub mode: CpuMode,
    /// The process with the address space; -1 for the kernel.
    pub pid: Pid,
    /// The thread that mapped it.
    pub tid: Tid,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// The offset in the file where the mapping starts, in bytes.
    pub file_offset: u64,
    /// Whether code can run there.
    pub executable: bool,
    /// `PROT_` bits, in MMAP2 records only.
    pub protection: Option<u32>,
    /// `MAP_` bits, in MMAP2 records only.
    pub flags: Option<u32>,
    /// The file's build id, in MMAP2 records that have one.
    pub build_id: Option<BuildId>,
    /// Device and inode, in MMAP2 records that have no build id.
    pub identity: Option<FileIdentity>,
    /// The mapped file: a path, or a name such as `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
    pub path: &'a OsStr,
}

/// A thread got a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// Whether it got the name by starting another program.
    pub exec: bool,
    /// The name, 15 bytes at most.
    pub name: &'a OsStr,
}

/// A thread was created or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The process of the thread that created it.
    pub parent_pid: Pid,
    /// The thread that created it.
    pub parent_tid: Tid,
    /// Time in ns.
    pub time: u64,
    /// Whether perf synthesized this for a process from before the recording: its maps are
    /// reported too, and are not those of its parent.
    pub existed: bool,
}

/// Something could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its stamp.
    pub stamp: Stamp,
    /// How much.
    pub count: u64,
}

/// Sampling was throttled because it took too much time, or has resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Its stamp.
    pub stamp: Stamp,
    /// Time in ns.
    pub time: u64,
    /// Id of the event.
    pub id: u64,
    /// Id that inherited events don't share.
    pub stream_id: u64,
}

/// An inherited event's count for a thread, reported when the thread ends
/// ([`AttrFlags::INHERIT_STAT`](crate::AttrFlags::INHERIT_STAT)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// The thread's process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The counts.
    pub values: ReadValues<'a>,
}

/// A thread got or left a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its stamp.
    pub stamp: Stamp,
    /// Whether the stamp's thread left the CPU rather than got it.
    pub out: bool,
    /// Whether it would have run on.
    pub preempted: bool,
    /// The next or the previous process and thread, in CPU-wide records only.
    pub other: Option<(Pid, Tid)>,
}

/// The namespaces that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    pub(crate) links: &'a [u8],
}

impl<'a> Namespaces<'a> {
    /// Device and inode of each namespace's file in `/proc/PID/ns`, in the order net, uts, ipc,
    /// pid, user, mnt, cgroup.
    pub fn links(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        self.links.chunks_exact(16).map(move |link| {
            let (device, inode) = link.split_at(8);
            (number(device), number(inode))
        })
    }
}

/// The kernel got or lost a symbol, such as that of a BPF program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub length: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_`: 1 for BPF, 2 for code outside of it (ftrace, kprobes).
    pub kind: u16,
    /// Whether the symbol was removed rather than added.
    pub unregistered: bool,
    /// Its name.
    pub name: &'a OsStr,
}

/// A control group was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its id, which samples hold.
    pub id: u64,
    /// Its path below the mount point of the cgroup file system.
    pub path: &'a OsStr,
}
