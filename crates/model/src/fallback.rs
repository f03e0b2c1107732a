//! What was taken instead of what was asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The next best thing that was taken where the machine or its settings refused the best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Fallback {
    /// The event is unavailable, and another one was taken.
    Event {
        /// The event asked for.
        asked: String,
        /// The event that counts instead.
        used: String,
    },
    /// The event is available, but this is a virtual machine, where another one is better.
    VirtualMachine {
        /// The event that is usual elsewhere.
        asked: String,
        /// The event that counts instead.
        used: String,
    },
    /// Only user code is sampled.
    UserOnly {
        /// The value of /proc/sys/kernel/perf_event_paranoid.
        paranoid: i32,
    },
    /// Sampling is slower than asked for.
    Rate {
        /// Samples per second asked for.
        asked: u64,
        /// Samples per second used: the kernel's maximum.
        used: u64,
    },
    /// Sampling is slower than asked for, lest it takes more than a quarter of a CPU.
    SampleCost {
        /// Samples per second asked for.
        asked: u64,
        /// Samples per second used.
        used: u64,
        /// Nanoseconds that a sample takes.
        cost: u64,
    },
    /// Children of the sampled threads are not sampled.
    NoChildren {
        /// The event, whose group's counts are sampled.
        event: String,
    },
    /// The ring buffers are smaller than they should be.
    Rings {
        /// Bytes per CPU wanted.
        asked: u64,
        /// Bytes per CPU that the budget of locked memory allows.
        used: u64,
    },
    /// No event may be opened (or none was wanted), and threads are stopped for a moment to see
    /// where they are.
    #[serde(alias = "stops")]
    Ptrace {
        /// Why no event may be opened, and what to do; `None` if stops were asked for.
        reason: Option<String>,
        /// Stops per second of each thread that runs, at most.
        hertz: u64,
    },
    /// There are no records of calls in branches, and stacks are copied and unwound instead.
    NoLastBranches {
        /// The event that should have come with them.
        event: String,
    },
    /// The kernel reports how long threads wait, and the recorder itself looks where.
    #[serde(alias = "sleepers")]
    BlockedThreads {
        /// The value of /proc/sys/kernel/perf_event_paranoid.
        paranoid: i32,
    },
    /// Less of each stack is copied than wanted, to fit the ring buffers.
    StackDump {
        /// Bytes per sample wanted.
        asked: u32,
        /// Bytes per sample used.
        used: u32,
    },
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
