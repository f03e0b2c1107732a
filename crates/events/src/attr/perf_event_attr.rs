//! The `perf_event_attr` of a request, for the kernel and for recordings.

use perf_event_open_sys::bindings::{
    self as sys, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_LOST,
    PERF_SAMPLE_BRANCH_CALL_STACK, PERF_SAMPLE_BRANCH_HW_INDEX, PERF_SAMPLE_BRANCH_NO_CYCLES,
    PERF_SAMPLE_BRANCH_NO_FLAGS, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_BRANCH_USER,
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,
    PERF_SAMPLE_PERIOD, PERF_SAMPLE_READ, PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};

use crate::attr::arch;
use crate::attr::encoding;
use crate::attr::setup::{Role, Sampling, Scope, Setup, Stacks, Tracking};

/// The size of the attribute for the kernel and in files, in bytes: PERF_ATTR_SIZE_VER7. Readers as
/// old as perf 6.1 refuse larger ones.
pub(crate) const ATTR_SIZE: usize = 128;

/// Calls of user code that have not returned, without other details.
const OPEN_CALLS: u64 = (PERF_SAMPLE_BRANCH_USER
    | PERF_SAMPLE_BRANCH_CALL_STACK
    | PERF_SAMPLE_BRANCH_NO_FLAGS
    | PERF_SAMPLE_BRANCH_NO_CYCLES) as u64;

impl Setup {
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
            // Stable kernels from 6.12.118 on take a chain without this bit for one of the kernel's
            // callers, and refuse it to plain users.
            attr.set_exclude_callchain_kernel(attr.exclude_kernel());
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
mod tests {
    use super::*;
    use crate::attr::setup::tests::setup;

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
        assert_eq!(both.attr().exclude_callchain_kernel(), 1);
        assert_eq!(setup("cycles").attr().exclude_callchain_kernel(), 0);
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
}
