//! Numbers of the kernel's interface, from `include/uapi/linux/perf_event.h`, and of perf's own
//! records, from `tools/lib/perf/include/perf/event.h`.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

macro_rules! bit_set {
    (
        $(#[$doc:meta])* $name:ident {
            $($(#[$bit_doc:meta])* $bit:ident = $value:expr;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self($value);)*

            /// Whether all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }
        }

        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl Not for $name {
            type Output = Self;
            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

bit_set! {
    /// Which values a sample holds (`enum perf_event_sample_format`).
    SampleType {
        /// Instruction pointer.
        IP = 1 << 0;
        /// Process and thread id.
        TID = 1 << 1;
        /// Time stamp.
        TIME = 1 << 2;
        /// Data address.
        ADDR = 1 << 3;
        /// Counter values.
        READ = 1 << 4;
        /// Call chain.
        CALLCHAIN = 1 << 5;
        /// Event id.
        ID = 1 << 6;
        /// CPU number.
        CPU = 1 << 7;
        /// Sampling period.
        PERIOD = 1 << 8;
        /// Event id that is not shared by inherited events.
        STREAM_ID = 1 << 9;
        /// Opaque bytes.
        RAW = 1 << 10;
        /// Last branches.
        BRANCH_STACK = 1 << 11;
        /// User registers.
        REGS_USER = 1 << 12;
        /// Copy of the user stack.
        STACK_USER = 1 << 13;
        /// Cost of the sampled instruction.
        WEIGHT = 1 << 14;
        /// Where the data came from.
        DATA_SRC = 1 << 15;
        /// Event id at a fixed place.
        IDENTIFIER = 1 << 16;
        /// Why a transaction aborted.
        TRANSACTION = 1 << 17;
        /// Registers at the interrupt.
        REGS_INTR = 1 << 18;
        /// Physical data address.
        PHYS_ADDR = 1 << 19;
        /// Piece of the AUX area.
        AUX = 1 << 20;
        /// Control group id.
        CGROUP = 1 << 21;
        /// Page size of the data address.
        DATA_PAGE_SIZE = 1 << 22;
        /// Page size of the instruction pointer.
        CODE_PAGE_SIZE = 1 << 23;
        /// Cost of the sampled instruction, in three numbers.
        WEIGHT_STRUCT = 1 << 24;
    }
}

bit_set! {
    /// The bit field of `struct perf_event_attr`.
    AttrFlags {
        /// Opened in the off state.
        DISABLED = 1 << 0;
        /// Children are counted too.
        INHERIT = 1 << 1;
        /// User code is not counted.
        EXCLUDE_USER = 1 << 4;
        /// Kernel code is not counted.
        EXCLUDE_KERNEL = 1 << 5;
        /// Hypervisor code is not counted.
        EXCLUDE_HV = 1 << 6;
        /// MMAP records of executable mappings.
        MMAP = 1 << 8;
        /// COMM records.
        COMM = 1 << 9;
        /// The period is a frequency in Hz.
        FREQ = 1 << 10;
        /// READ records when a thread ends.
        INHERIT_STAT = 1 << 11;
        /// Switched on by the next exec.
        ENABLE_ON_EXEC = 1 << 12;
        /// FORK and EXIT records.
        TASK = 1 << 13;
        /// MMAP records of the other mappings.
        MMAP_DATA = 1 << 17;
        /// Every record ends with a sample id.
        SAMPLE_ID_ALL = 1 << 18;
        /// No kernel part in call chains.
        EXCLUDE_CALLCHAIN_KERNEL = 1 << 21;
        /// No user part in call chains.
        EXCLUDE_CALLCHAIN_USER = 1 << 22;
        /// MMAP2 records rather than MMAP.
        MMAP2 = 1 << 23;
        /// COMM records tell whether an exec was the cause.
        COMM_EXEC = 1 << 24;
        /// Time stamps are those of `clockid`.
        USE_CLOCKID = 1 << 25;
        /// SWITCH records.
        CONTEXT_SWITCH = 1 << 26;
        /// NAMESPACES records.
        NAMESPACES = 1 << 28;
        /// KSYMBOL records.
        KSYMBOL = 1 << 29;
        /// CGROUP records.
        CGROUP = 1 << 32;
        /// MMAP2 records hold build ids.
        BUILD_ID = 1 << 34;
    }
}

bit_set! {
    /// What a counter's value comes with (`enum perf_event_read_format`).
    ReadFormat {
        /// For how long the event was enabled.
        TOTAL_TIME_ENABLED = 1 << 0;
        /// For how long it really counted.
        TOTAL_TIME_RUNNING = 1 << 1;
        /// The event's id.
        ID = 1 << 2;
        /// All events of the group.
        GROUP = 1 << 3;
        /// How many samples were lost.
        LOST = 1 << 4;
    }
}

impl SampleType {
    /// Every field there is, as far as known.
    pub(crate) const ALL: Self = Self((1 << 25) - 1);
}

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
    pub const EVENT_UPDATE: u32 = 78;
    pub const TIME_CONV: u32 = 79;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
}

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
    /// In build id records only, which perf writes.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Markers in a call chain that tell where the addresses after them come from
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

/// Who ran (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Not told.
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
    pub fn from_misc(misc: u16) -> Self {
        match misc & misc::CPUMODE_MASK {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// The bits of `misc` that stand for it.
    pub fn to_misc(self) -> u16 {
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
