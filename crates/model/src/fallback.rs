//! What a recording uses instead of what was requested.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A substitute that is used because the machine or its settings refuse the first choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Fallback {
    /// The event is unavailable, and another one is used.
    Event {
        /// The requested event.
        asked: String,
        /// The event that counts instead.
        used: String,
    },
    /// The event is available, but this is a virtual machine, where another one is better.
    VirtualMachine {
        /// The event that is the default on physical machines.
        asked: String,
        /// The event that counts instead.
        used: String,
    },
    /// Only user code is sampled.
    UserOnly {
        /// The value of /proc/sys/kernel/perf_event_paranoid.
        paranoid: i32,
    },
    /// The kernel, a security module or a sandbox forbids a part of the request.
    Refused {
        /// What was left out.
        part: RefusedPart,
    },
    /// Sampling is slower than requested.
    Rate {
        /// Samples per second requested.
        asked: u64,
        /// Samples per second used: the kernel's maximum.
        used: u64,
    },
    /// Sampling is slower than requested, because it would take more than a quarter of a CPU.
    SampleCost {
        /// Samples per second requested.
        asked: u64,
        /// Samples per second used.
        used: u64,
        /// Nanoseconds that a sample takes.
        cost: u64,
    },
    /// Children of the sampled threads are not sampled.
    NoChildren {
        /// The event that samples the counts of its group.
        event: String,
    },
    /// The ring buffers are smaller than requested.
    Rings {
        /// Bytes per CPU requested.
        asked: u64,
        /// Bytes per CPU that the budget of locked memory allows.
        used: u64,
    },
    /// Events are unavailable (or were not requested): threads are stopped briefly to read their
    /// stacks.
    #[serde(alias = "stops")]
    Ptrace {
        /// Why events are unavailable, and what to do; `None` if ptrace was requested.
        reason: Option<String>,
        /// The most stops per second of each running thread.
        hertz: u64,
    },
    /// There are no branch records with call stacks: stacks are copied and unwound instead.
    NoLastBranches {
        /// The event that should have had them.
        event: String,
    },
    /// The kernel reports how long threads wait; the recorder reads their stacks itself.
    #[serde(alias = "sleepers")]
    BlockedThreads {
        /// The value of /proc/sys/kernel/perf_event_paranoid.
        paranoid: i32,
    },
    /// Less of each stack is copied than requested, to fit the ring buffers.
    StackDump {
        /// Bytes per sample requested.
        asked: u32,
        /// Bytes per sample used.
        used: u32,
    },
}

/// A part of a request that a recording can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedPart {
    /// The kernel's own chain of user code, which follows frame pointers.
    CallChain,
    /// Build ids in the records of mappings.
    BuildIds,
}

impl fmt::Display for RefusedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CallChain => {
                "the kernel's own call chains are forbidden here: prof unwinds without them"
            }
            Self::BuildIds => {
                "build ids in the kernel's records are forbidden here: prof reads them from the \
                 files"
            }
        })
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { asked, used } => write!(
                f,
                "sampling {used} instead of {asked}: this machine has no hardware counters"
            ),
            Self::VirtualMachine { asked, used } => write!(
                f,
                "sampling {used} instead of {asked}: in virtual machines, samples of {asked} cost \
                 more and some of their stacks are broken (-e {asked} samples {asked} anyway)"
            ),
            Self::UserOnly { paranoid } => write!(
                f,
                "kernel code is not sampled, because perf_event_paranoid is {paranoid} (`sudo \
                 sysctl kernel.perf_event_paranoid=1` allows it)"
            ),
            Self::Refused { part } => part.fmt(f),
            Self::Rate { asked, used } => write!(
                f,
                "sampling at {used} Hz instead of {asked} Hz: the kernel allows no more (`sudo \
                 sysctl kernel.perf_event_max_sample_rate={asked}` raises the limit)"
            ),
            Self::SampleCost { asked, used, cost } => write!(
                f,
                "sampling at {used} Hz instead of {asked} Hz: a sample takes {:.1} µs on this \
                 machine, and all samples together take at most a quarter of the program's time",
                *cost as f64 / 1000.0
            ),
            Self::NoChildren { event } => write!(
                f,
                "only the first thread is sampled: {event} reads the counts of its group, and \
                 kernels before Linux 6.13 cannot do that in new threads and processes"
            ),
            Self::Rings { asked, used } => write!(
                f,
                "ring buffers have {} KiB per CPU instead of {} KiB: the limit on locked memory is \
                 low (`ulimit -l` or kernel.perf_event_mlock_kb raises it)",
                used / 1024,
                asked / 1024
            ),
            Self::Ptrace { reason, hertz } => {
                write!(
                    f,
                    "sampling by stopping threads (ptrace): user code only, at most {hertz} Hz"
                )?;
                match reason {
                    Some(reason) => write!(f, "; perf_event_open is refused: {reason}"),
                    None => Ok(()),
                }
            }
            Self::NoLastBranches { event } => write!(
                f,
                "this machine has no branch records (LBR) with call stacks for {event}: stacks are \
                 copied and unwound instead, as with --call-graph dwarf"
            ),
            Self::BlockedThreads { paranoid } => write!(
                f,
                "waits are shown without kernel functions: prof reads the stacks of sleeping threads \
                 itself, because perf_event_paranoid is {paranoid} (`sudo sysctl \
                 kernel.perf_event_paranoid=1` lets the kernel report each wait)"
            ),
            Self::StackDump { asked, used } => write!(
                f,
                "copying {} KiB of each stack instead of {} KiB, so that the ring buffers hold \
                 enough samples",
                used / 1024,
                asked / 1024
            ),
        }
    }
}
