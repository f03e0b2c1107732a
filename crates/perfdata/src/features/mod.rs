//! Facts about the machine and the run, in sections after the samples.

pub(crate) mod read;
pub(crate) mod write;

use std::ffi::OsString;

use prof_model::{BuildId, Pid, Quality};

use crate::abi::CpuMode;

/// Facts about the machine and the run. Each may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Build ids of modules that were hit (`HEADER_BUILD_ID`).
    pub build_ids: Vec<ModuleBuildId>,
    /// Name of the machine (`HEADER_HOSTNAME`).
    pub hostname: Option<String>,
    /// Release of the kernel, as `uname -r` says (`HEADER_OSRELEASE`).
    pub os_release: Option<String>,
    /// Version of the program that recorded (`HEADER_VERSION`).
    pub version: Option<String>,
    /// Architecture, as `uname -m` says (`HEADER_ARCH`).
    pub arch: Option<String>,
    /// How many CPUs there are (`HEADER_NRCPUS`).
    pub nr_cpus: Option<CpuCounts>,
    /// The CPU's model in words (`HEADER_CPUDESC`).
    pub cpu_desc: Option<String>,
    /// The CPU's model in numbers (`HEADER_CPUID`).
    pub cpu_id: Option<String>,
    /// Memory of the machine, in KiB (`HEADER_TOTAL_MEM`).
    pub total_memory: Option<u64>,
    /// The command that recorded, with its arguments (`HEADER_CMDLINE`).
    pub command_line: Vec<OsString>,
    /// Time of the first and the last sample, in ns of the recording's clock
    /// (`HEADER_SAMPLE_TIME`).
    pub sample_time: Option<(u64, u64)>,
    /// Whether `perf stat record` wrote it: it has counts, and no samples (`HEADER_STAT`).
    pub has_counts_only: bool,
    /// Resolution of the clock, in ns (`HEADER_CLOCKID`; the clock is in the events' attributes).
    pub clock_resolution: Option<u64>,
    /// How the recording's clock relates to the time of day (`HEADER_CLOCK_DATA`).
    pub clock: Option<ClockData>,
    /// How records are compressed, if they are (`HEADER_COMPRESSED`). The [`Writer`](crate::Writer)
    /// sets it.
    pub compression: Option<Compression>,
    /// Losses with their reasons, in recordings of prof only (feature 200).
    pub quality: Option<Quality>,
    /// Names of the functions that were hit, in recordings of prof that were archived (feature
    /// 201); in the form of `prof_symbols::EmbeddedSymbols`.
    pub symbols: Option<Vec<u8>>,
}

/// Numbers of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// Running.
    pub online: u32,
    /// Running, or able to.
    pub available: u32,
}

/// How records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// zstd's level, 1 to 22.
    pub level: i32,
    /// How many bytes became one.
    pub ratio: u32,
    /// Bytes that one packed record needs at most when it is unpacked.
    pub buffer_size: u32,
}

/// The same moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// The recording's clock, a `CLOCK_` number.
    pub clockid: u32,
    /// Time of day, in ns since 1970.
    pub wall_clock: u64,
    /// Time of the recording's clock, in ns.
    pub clock: u64,
}

/// The build id of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleBuildId {
    /// Kernel or user.
    pub mode: CpuMode,
    /// A process that mapped it; perf writes -1 for all.
    pub pid: Pid,
    /// Its build id.
    pub build_id: BuildId,
    /// Its path, or a name such as `[kernel.kallsyms]`, `[vdso]`.
    pub path: OsString,
}

/// Numbers of the sections (perf's `enum` of `HEADER_` constants in `util/header.h`).
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u64 = 2;
    pub(crate) const HOSTNAME: u64 = 3;
    pub(crate) const OSRELEASE: u64 = 4;
    pub(crate) const VERSION: u64 = 5;
    pub(crate) const ARCH: u64 = 6;
    pub(crate) const NRCPUS: u64 = 7;
    pub(crate) const CPUDESC: u64 = 8;
    pub(crate) const CPUID: u64 = 9;
    pub(crate) const TOTAL_MEM: u64 = 10;
    pub(crate) const CMDLINE: u64 = 11;
    pub(crate) const EVENT_DESC: u64 = 12;
    pub(crate) const STAT: u64 = 19;
    pub(crate) const SAMPLE_TIME: u64 = 21;
    pub(crate) const CLOCKID: u64 = 23;
    pub(crate) const COMPRESSED: u64 = 27;
    pub(crate) const CLOCK_DATA: u64 = 29;
    /// Ours: perf skips numbers that it doesn't know.
    pub(crate) const QUALITY: u64 = 200;
    /// Ours.
    pub(crate) const SYMBOLS: u64 = 201;
}
