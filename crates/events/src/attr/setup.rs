//! The request to the kernel for an event.

use std::sync::Arc;

use crate::attr::arch;
use crate::attr::definition::Definition;
use crate::attr::sample_period::{self, SamplePeriod};
use crate::parsing::EventSpec;
use crate::request::event::Weight;

/// How often the kernel samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// This many samples per second of each thread.
    Hertz(u64),
    /// One sample per this many events.
    Period(u64),
    /// This many samples per second, as a period that prof has computed ([`SamplePeriod`]).
    MeasuredPeriod(u64, SamplePeriod),
    /// Never: the event is counted, and its group's leader samples.
    Never,
}

/// The stack data of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// User registers and this many bytes from the top of the stack; kernel callers as a chain.
    Dump(u32),
    /// A chain that the kernel made by following frame pointers.
    FramePointers,
    /// The same, and the calls of user code that have not returned, as the CPU keeps them in its
    /// branch records (LBR).
    LastBranches {
        /// Whether the CPU reports the position of the first one in its ring of records (Linux
        /// 5.7).
        index: bool,
        /// Bytes of stack to dump instead, if the CPU records no calls.
        otherwise: u32,
    },
    /// Nothing.
    None,
}

/// The work that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything on a CPU.
    Cpu,
    /// A thread.
    Thread,
    /// A thread, and the threads and processes that it creates later (`inherit`).
    Descendants,
}

/// Whether an event delivers the records of threads and mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// Another event delivers them.
    Elsewhere,
    /// This event delivers them, too.
    Also,
    /// This event delivers only them, and stays enabled while the others are disabled.
    Only,
}

/// What an event reports besides samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Threads and mappings.
    pub tracking: Tracking,
    /// When threads leave their CPU and return.
    pub switches: bool,
    /// A thread's count as the thread ends (`exit_counters`).
    pub exit_counts: bool,
}

/// Additions to a stack dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithDump {
    /// Whether the kernel follows the user's frame pointers as well.
    pub user_chain: bool,
    /// Whether the sample has the registers at its instant, even in kernel code: at the kernel's
    /// entry, those of the user's code are not saved yet.
    pub entry_registers: bool,
}

/// The role of an event in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It leads its group, or has none.
    Leader,
    /// It starts and stops with the leader, which is another event.
    Member,
}

/// Features that older kernels lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Whether MMAP2 records carry build ids (Linux 5.12).
    pub build_ids: bool,
    /// Whether reading the event says how many of its samples were lost (Linux 6.0).
    pub lost_counts: bool,
}

/// The complete request to the kernel for one event. Opening starts with the best one and takes one
/// step down after the other until the kernel accepts it (see `fallback`).
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The event.
    pub spec: EventSpec,
    /// The uprobe's definition in the kernel, if it is a uprobe.
    pub definition: Option<Arc<Definition>>,
    /// Whether the clock may replace it.
    pub replaceable: bool,
    /// How often.
    pub sampling: Sampling,
    /// The stack data to sample.
    pub stacks: Stacks,
    /// Additions to a stack dump.
    pub with_dump: WithDump,
    /// Its role in its group.
    pub role: Role,
    /// Whether samples hold the counts of all events of the group.
    pub reads_group: bool,
    /// Its records besides samples.
    pub reports: Reports,
    /// How a sample is weighed.
    pub weight: Weight,
    /// The work that it counts.
    pub scope: Scope,
    /// Whether sampling begins by itself when the thread calls `exec`.
    pub enable_on_exec: bool,
    /// How close the sampled address must be to the event (`precise_ip`, 0 to 3).
    pub precise: u8,
    /// Features of newer kernels.
    pub features: Features,
    /// Bytes in the ring at which the reader is woken.
    pub wakeup_bytes: u32,
}

impl Setup {
    /// An event of a thread and its children, without stacks and without other records.
    pub fn new(spec: EventSpec, sampling: Sampling) -> Self {
        Self {
            spec,
            definition: None,
            replaceable: false,
            sampling,
            stacks: Stacks::None,
            with_dump: WithDump::default(),
            role: Role::Leader,
            reads_group: false,
            reports: Reports {
                tracking: Tracking::Elsewhere,
                switches: false,
                exit_counts: false,
            },
            weight: Weight::Period,
            scope: Scope::Descendants,
            enable_on_exec: false,
            precise: 0,
            features: Features {
                build_ids: true,
                lost_counts: true,
            },
            wakeup_bytes: 0,
        }
    }

    /// Which user registers come with a stack dump, as bits in the kernel's numbering.
    pub fn user_registers(&self) -> u64 {
        match self.weight {
            Weight::Blocked => arch::BLOCKED_REGISTERS,
            _ => arch::USER_REGISTERS,
        }
    }

    /// Whether this event is opened for its SWITCH records only, and never samples.
    pub fn only_switches(&self) -> bool {
        self.weight == Weight::OffCpu && !self.spec.happens_in_kernel_only()
    }

    /// The event of samples that prof itself takes of blocked threads, instead of or besides those
    /// of this one. It is never opened: it describes the layout of such samples.
    #[must_use]
    pub fn of_blocked_threads(&self, dump: u32) -> Self {
        Self {
            spec: EventSpec::off_cpu_by_switches(),
            sampling: Sampling::Period(1),
            stacks: Stacks::Dump(dump),
            with_dump: WithDump {
                user_chain: true,
                entry_registers: false,
            },
            reports: Reports {
                tracking: Tracking::Elsewhere,
                switches: false,
                ..self.reports
            },
            weight: Weight::Blocked,
            ..self.clone()
        }
    }

    /// Whether it is opened for its records of threads and mappings only, and never samples.
    pub fn only_tracks(&self) -> bool {
        self.reports.tracking == Tracking::Only
    }

    /// The most samples per second of a busy CPU; `None` if unknown.
    pub fn highest_rate(&self) -> Option<u64> {
        match self.sampling {
            Sampling::Hertz(hertz) | Sampling::MeasuredPeriod(hertz, _) => Some(hertz),
            Sampling::Period(period) => {
                Some(sample_period::per_second_at_most(&self.spec)? / period.max(1))
            }
            Sampling::Never => Some(0),
        }
    }

    /// The periods, if prof chooses them.
    pub fn sample_period(&self) -> Option<SamplePeriod> {
        match self.sampling {
            Sampling::MeasuredPeriod(_, sample_period) => Some(sample_period),
            _ => None,
        }
    }

    /// Whether each sample has a callchain from the kernel.
    pub fn has_chain(&self) -> bool {
        match self.stacks {
            Stacks::Dump(_) => self.spec.modifiers.kernel || self.with_dump.user_chain,
            Stacks::FramePointers | Stacks::LastBranches { .. } => true,
            Stacks::None => false,
        }
    }

    /// Whether samples contain their period. If they do, the kernel ignores the period of software
    /// events and probes and delivers every hit (perf_swevent_event).
    pub(crate) fn says_period(&self) -> bool {
        !(self.spec.is_counted_by_kernel() && matches!(self.sampling, Sampling::Period(2..)))
    }

    /// Whether a sample says the period that begins with it, not its own (perf_swevent_overflow).
    /// If so, it also says which thread's event took it.
    pub fn says_next_period(&self) -> bool {
        self.spec.is_counted_by_kernel() && matches!(self.sampling, Sampling::Hertz(_))
    }

    /// Copies the settings that a group must share from its opened leader.
    pub(crate) fn follow(&mut self, leader: &Self) {
        self.scope = leader.scope;
        if self.reads_group {
            // Readers use the leader's samples as samples of each member.
            self.stacks = leader.stacks;
            self.features.lost_counts = leader.features.lost_counts;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::parsing::Catalog;
    use crate::system::System;

    /// A usual machine, for a plain user.
    pub(crate) fn system() -> System {
        System {
            paranoid: 2,
            max_rate: 100_000,
            max_stack: 127,
            cpus: vec![0, 1],
            virtual_machine: false,
        }
    }

    pub(crate) fn setup(event: &str) -> Setup {
        let groups = Catalog::system().parse(event).expect("an event");
        Setup {
            stacks: Stacks::Dump(4096),
            reports: Reports {
                tracking: Tracking::Also,
                switches: false,
                exit_counts: true,
            },
            enable_on_exec: true,
            wakeup_bytes: 4096,
            ..Setup::new(groups[0].events[0].clone(), Sampling::Hertz(999))
        }
    }

    #[test]
    fn how_fast_samples_can_come() {
        let check = |event, sampling, expected: Option<u64>| {
            let setup = Setup {
                sampling,
                ..setup(event)
            };
            assert_eq!(setup.highest_rate(), expected, "{event} {sampling:?}");
        };
        check("cycles", Sampling::Hertz(999), Some(999));
        check("cpu-clock", Sampling::Period(200_000), Some(5000));
        check("cycles", Sampling::Period(500_000), Some(13_000));
        check("cycles", Sampling::Never, Some(0));
        check("page-faults", Sampling::Period(1), None);
        check("instructions", Sampling::Period(1_000_000), None);
    }
}
