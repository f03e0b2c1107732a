//! Numbers of the kernel's interface, from `include/uapi/linux/perf_event.h`, and of perf's own
//! records, from `tools/lib/perf/include/perf/event.h`.

/// Types of records (`enum perf_event_type`; from 64 on perf's `enum perf_user_event_type`).
pub mod record_type {
    #![allow(missing_docs)]
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const NAMESPACES: u32 = 16;
    pub const KSYMBOL: u32 = 17;
    pub const BPF_EVENT: u32 = 18;
    pub const CGROUP: u32 = 19;
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE: u32 = 71;
    pub const THREAD_MAP: u32 = 73;
    pub const CPU_MAP: u32 = 74;
    /// Settings of `perf stat`: how many, and of each a number and a value.
    pub const STAT_CONFIG: u32 = 75;
    pub const EVENT_UPDATE: u32 = 78;
    pub const TIME_CONV: u32 = 79;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
}

/// The tag of the setting in a STAT_CONFIG record that, in pipe form, a feature of prof's own
/// follows: its value is the feature's number.
pub(crate) const OWN_FEATURE: u64 = u64::from_le_bytes(*b"prof own");

/// Bits of `perf_event_header.misc`; several share a number and depend on the record's type.
pub mod misc {
    #![allow(missing_docs)]
    pub const CPUMODE_MASK: u16 = 7;
    pub const PROC_MAP_PARSE_TIMEOUT: u16 = 1 << 12;
    pub const MMAP_DATA: u16 = 1 << 13;
    pub const COMM_EXEC: u16 = 1 << 13;
    pub const FORK_EXEC: u16 = 1 << 13;
    pub const SWITCH_OUT: u16 = 1 << 13;
    pub const EXACT_IP: u16 = 1 << 14;
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// Only in build id records, which perf writes.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Markers in a call chain that say where the addresses after them come from
/// (`enum perf_callchain_context`).
pub mod context {
    #![allow(missing_docs)]
    pub const HV: u64 = -32_i64 as u64;
    pub const KERNEL: u64 = -128_i64 as u64;
    pub const USER: u64 = -512_i64 as u64;
    pub const GUEST: u64 = -2048_i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176_i64 as u64;
    pub const GUEST_USER: u64 = -2560_i64 as u64;
    /// Anything from here up is a marker, not an address.
    pub const MAX: u64 = -4095_i64 as u64;
}

/// `branch_sample_type` bit: each branch stack starts with a hardware index.
pub(crate) const BRANCH_HW_INDEX: u64 = 1 << 17;
/// `branch_sample_type` bit: each branch stack ends with counters, 8 bytes for each branch.
pub(crate) const BRANCH_COUNTERS: u64 = 1 << 19;

/// The mode of the CPU (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Unknown.
    #[default]
    Unknown,
    /// The kernel.
    Kernel,
    /// A process.
    User,
    /// A hypervisor.
    Hypervisor,
    /// The kernel of a guest.
    GuestKernel,
    /// A process of a guest.
    GuestUser,
}

impl CpuMode {
    /// The mode in a record's `misc` bits.
    pub(crate) fn from_misc(misc: u16) -> Self {
        match misc & misc::CPUMODE_MASK {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// The bits of `misc` for it.
    pub(crate) fn to_misc(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Kernel => 1,
            Self::User => 2,
            Self::Hypervisor => 3,
            Self::GuestKernel => 4,
            Self::GuestUser => 5,
        }
    }

    /// Whether it is the kernel, of this machine or of a guest.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::GuestKernel)
    }
}
