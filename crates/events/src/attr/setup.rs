//! The request to the kernel for an event, and its `perf_event_attr`.

use std::sync::Arc;

use perf_event_open_sys::bindings::{
    self as sys, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_LOST,
    PERF_SAMPLE_BRANCH_CALL_STACK, PERF_SAMPLE_BRANCH_HW_INDEX, PERF_SAMPLE_BRANCH_NO_CYCLES,
    PERF_SAMPLE_BRANCH_NO_FLAGS, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_BRANCH_USER,
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,
    PERF_SAMPLE_PERIOD, PERF_SAMPLE_READ, PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};

use crate::attr::arch;
use crate::attr::definition::Definition;
use crate::attr::encoding;
use crate::attr::sample_period::{self, SamplePeriod};
use crate::parsing::EventSpec;
use crate::request::event::Weight;

/// The size of the attribute for the kernel and in files, in bytes: PERF_ATTR_SIZE_VER7. Readers as
/// old as perf 6.1 refuse larger ones.
pub(crate) const ATTR_SIZE: usize = 128;

/// Calls of user code that have not returned, without other details.
const OPEN_CALLS: u64 = (PERF_SAMPLE_BRANCH_USER
    | PERF_SAMPLE_BRANCH_CALL_STACK
    | PERF_SAMPLE_BRANCH_NO_FLAGS
    | PERF_SAMPLE_BRANCH_NO_CYCLES) as u64;

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

    /// The `perf_event_attr` as it is written to a recording: 128 bytes in the machine's byte
    /// order. The pointer to a uprobe's path is zero.
    pub fn attr_bytes(&self) -> Vec<u8> {
        let shown = Self {
            definition: None,
            ..self.clone()
        };
        let mut attr = shown.attr();
        attr.size = ATTR_SIZE as u32;
        if let Sampling::MeasuredPeriod(hertz, _) = self.sampling {
            // The requested rate; each sample has its own period anyway.
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = hertz;
        }
        encoding::bytes(&attr, &self.spec)
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

    /// The attribute for the kernel. It may point to the path in the spec, so it must not
    /// outlive it.
    pub(crate) fn attr(&self) -> sys::perf_event_attr {
        const {
            assert!(size_of::<sys::perf_event_attr>() >= ATTR_SIZE);
        }
        let mut attr = encoding::attr(&self.spec);
        if let Some(definition) = &self.definition {
            definition.apply(&mut attr);
        }
        self.set_sampling(&mut attr);
        self.set_start(&mut attr);
        self.set_stacks(&mut attr);
        self.set_side_band(&mut attr);
        attr
    }

    fn set_sampling(&self, attr: &mut sys::perf_event_attr) {
        attr.sample_type = (PERF_SAMPLE_IDENTIFIER
            | PERF_SAMPLE_IP
            | PERF_SAMPLE_TID
            | PERF_SAMPLE_TIME
            | PERF_SAMPLE_CPU) as u64;
        attr.read_format = PERF_FORMAT_ID as u64;
        if self.says_period() {
            attr.sample_type |= PERF_SAMPLE_PERIOD as u64;
        }
        if self.says_next_period() {
            attr.sample_type |= PERF_SAMPLE_STREAM_ID as u64;
        }
        if self.reads_group {
            attr.sample_type |= PERF_SAMPLE_READ as u64;
            attr.read_format |= PERF_FORMAT_GROUP as u64;
        }
        if self.features.lost_counts {
            attr.read_format |= PERF_FORMAT_LOST as u64;
        }
        match self.sampling {
            Sampling::Hertz(hertz) => {
                attr.set_freq(1);
                attr.__bindgen_anon_1.sample_freq = hertz;
            }
            Sampling::Period(period) => attr.__bindgen_anon_1.sample_period = period,
            Sampling::MeasuredPeriod(_, sample_period) => {
                attr.__bindgen_anon_1.sample_period = sample_period.period
            }
            Sampling::Never => {}
        }
        attr.set_precise_ip(self.precise.into());
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = self.wakeup_bytes;
    }

    fn set_start(&self, attr: &mut sys::perf_event_attr) {
        let leads = self.role == Role::Leader;
        attr.set_inherit((self.scope == Scope::Descendants).into());
        // Whether a group fits the hardware is checked for those of its members that are enabled.
        attr.set_disabled(leads.into());
        attr.set_enable_on_exec((self.enable_on_exec && leads).into());
    }

    fn set_stacks(&self, attr: &mut sys::perf_event_attr) {
        if self.has_chain() {
            attr.sample_type |= PERF_SAMPLE_CALLCHAIN as u64;
            attr.sample_max_stack = self.spec.terms.max_stack.unwrap_or(0);
        }
        if let Stacks::Dump(bytes) = self.stacks {
            attr.sample_type |= (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER) as u64;
            attr.sample_regs_user = self.user_registers();
            attr.sample_stack_user = bytes;
            let excluded = self.has_chain() && !self.with_dump.user_chain;
            attr.set_exclude_callchain_user(excluded.into());
            if self.with_dump.entry_registers {
                attr.sample_type |= PERF_SAMPLE_REGS_INTR as u64;
                attr.sample_regs_intr = arch::ENTRY_REGISTERS;
            }
        }
        if let Stacks::LastBranches { index, .. } = self.stacks {
            attr.sample_type |= PERF_SAMPLE_BRANCH_STACK as u64;
            attr.branch_sample_type = OPEN_CALLS;
            if index {
                attr.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX as u64;
            }
        }
    }

    /// Enables the records of threads and mappings.
    fn set_side_band(&self, attr: &mut sys::perf_event_attr) {
        attr.set_sample_id_all(1);
        attr.set_context_switch(self.reports.switches.into());
        if self.reports.tracking != Tracking::Elsewhere {
            attr.set_mmap(1);
            attr.set_mmap2(1);
            attr.set_build_id(self.features.build_ids.into());
            attr.set_comm(1);
            attr.set_comm_exec(1);
            attr.set_task(1);
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
    fn user_only_events_request_no_kernel_chain() {
        let chain = |setup: &Setup| setup.attr().sample_type & PERF_SAMPLE_CALLCHAIN as u64 != 0;
        assert!(chain(&setup("cycles")));
        let user = setup("cycles:u");
        assert!(!chain(&user));
        assert_eq!(user.attr().exclude_kernel(), 1);
        let mut both = user;
        both.with_dump.user_chain = true;
        assert!(chain(&both));
        assert_eq!(both.attr().exclude_callchain_user(), 0);
    }

    /// The bits that `perf record -vv --call-graph lbr` shows: sample_type has CALLCHAIN and
    /// BRANCH_STACK, branch_type is USER|CALL_STACK|NO_FLAGS|NO_CYCLES|HW_INDEX.
    #[test]
    fn calls_in_branch_records_are_requested_as_by_perf() {
        let check = |index, expected: u64| {
            let otherwise = 8192;
            let setup = Setup {
                stacks: Stacks::LastBranches { index, otherwise },
                ..setup("cycles")
            };
            let attr = setup.attr();
            assert_eq!(attr.branch_sample_type, expected);
            assert_eq!(attr.sample_type & 1 << 5, 1 << 5, "CALLCHAIN");
            assert_eq!(attr.sample_type & 1 << 11, 1 << 11, "BRANCH_STACK");
            assert_eq!(attr.sample_type & (1 << 12 | 1 << 13), 0, "no dump");
            assert_eq!(attr.exclude_callchain_user(), 0);
            let bytes = setup.attr_bytes();
            assert_eq!(bytes.get(72..80), Some(&expected.to_ne_bytes()[..]));
        };
        check(true, 0x2c801);
        check(false, 0xc801);
        let attr = setup("cycles").attr();
        assert_eq!(
            (attr.branch_sample_type, attr.sample_type & 1 << 11),
            (0, 0)
        );
    }

    #[test]
    fn bytes_are_as_long_as_they_say() {
        let bytes = setup("cycles").attr_bytes();
        assert_eq!(bytes.len(), ATTR_SIZE);
        assert_eq!(bytes.get(4..8), Some(&(ATTR_SIZE as u32).to_ne_bytes()[..]));
    }

    #[test]
    fn periods_of_software_events_are_not_requested() {
        let check = |event: &str, sampling: Sampling, expected: bool| {
            let setup = Setup {
                sampling,
                ..setup(event)
            };
            let says = setup.attr().sample_type & PERF_SAMPLE_PERIOD as u64 != 0;
            assert_eq!(says, expected, "{event} {sampling:?}");
        };
        check("page-faults", Sampling::Hertz(99), true);
        check("page-faults", Sampling::Period(1), true);
        check("page-faults", Sampling::Period(100), false);
        check("mem:0x1000", Sampling::Period(100), false);
        check("cpu-clock", Sampling::Period(100), true);
        check("cycles", Sampling::Period(100), true);
    }

    #[test]
    fn members_start_with_their_leader_and_are_read_with_it() {
        let leader = Setup {
            reads_group: true,
            ..setup("cpu-clock")
        };
        let mut member = Setup {
            role: Role::Member,
            sampling: Sampling::Never,
            ..leader.clone()
        };
        member.reports.tracking = Tracking::Elsewhere;
        let (leader, member) = (leader.attr(), member.attr());
        assert_eq!((leader.disabled(), leader.enable_on_exec()), (1, 1));
        assert_eq!((member.disabled(), member.enable_on_exec()), (0, 0));
        assert_eq!((leader.mmap(), member.mmap()), (1, 0));
        assert_eq!(leader.sample_type, member.sample_type);
        assert_ne!(leader.sample_type & PERF_SAMPLE_READ as u64, 0);
        assert_ne!(leader.read_format & PERF_FORMAT_GROUP as u64, 0);
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
