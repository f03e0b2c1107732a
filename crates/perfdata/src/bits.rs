//! Sets of bits in `struct perf_event_attr`, from `include/uapi/linux/perf_event.h`.

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
        /// Enabled by the next exec.
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
        /// COMM records say whether an exec was the cause.
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
    /// The fields of a counter's value (`enum perf_event_read_format`).
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
