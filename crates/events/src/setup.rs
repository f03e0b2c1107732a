//! What is asked of the kernel for an event, and its `perf_event_attr`.

use perf_event_open_sys::bindings::{
    self as sys, PERF_FORMAT_ID, PERF_FORMAT_LOST, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU,
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};

use crate::arch;
use crate::event::{Event, Source};

/// The size of the attribute that is given to the kernel and written to files, in bytes:
/// PERF_ATTR_SIZE_VER7. Readers as old as perf 6.1 refuse larger ones.
pub const ATTR_SIZE: usize = 128;

/// How often the kernel shall sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// So many samples per second of each thread.
    Hertz(u64),
    /// One sample each so many events.
    Period(u64),
}

/// What of the stack comes with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// User registers and this many bytes from the top of the stack; kernel callers as a chain.
    Dump(u32),
    /// A chain that the kernel made by following frame pointers.
    FramePointers,
    /// Nothing.
    None,
}

/// Everything that is asked of the kernel for one event. Opening starts with the best and takes
/// one step down after the other until the kernel agrees (see `ladder`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What to sample by.
    pub event: Event,
    /// How often.
    pub sampling: Sampling,
    /// What of the stack to sample.
    pub stacks: Stacks,
    /// Whether sampling begins by itself when the thread calls `exec`.
    pub enable_on_exec: bool,
    /// How close the sampled address must be to the event (`precise_ip`, 0 to 3).
    pub precise: u8,
    /// Whether MMAP2 records carry build ids (Linux 5.12).
    pub build_ids: bool,
    /// Whether reading the event tells how many of its samples were lost (Linux 6.0).
    pub lost_counts: bool,
    /// Bytes in the ring at which the reader is woken.
    pub wakeup_bytes: u32,
}

impl Setup {
    /// The `perf_event_attr` as it is written to a recording: [`ATTR_SIZE`] bytes in the
    /// machine's byte order.
    pub fn attr_bytes(&self) -> Vec<u8> {
        let attr = self.attr();
        // SAFETY: perf_event_attr is a C structure of integers without padding (the kernel
        // copies it as bytes), every byte was initialized by `default`, and it is larger than
        // ATTR_SIZE.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const attr).cast(), ATTR_SIZE) };
        <[u8]>::to_vec(bytes)
    }

    /// Which user registers come with a stack dump, as bits in the kernel's numbering.
    pub fn user_registers(&self) -> u64 {
        arch::USER_REGISTERS
    }

    pub(crate) fn attr(&self) -> sys::perf_event_attr {
        const {
            assert!(size_of::<sys::perf_event_attr>() >= ATTR_SIZE);
        }
        let mut attr = sys::perf_event_attr {
            size: ATTR_SIZE as u32,
            ..Default::default()
        };
        (attr.type_, attr.config) = kind(self.event.source);
        self.set_sampling(&mut attr);
        self.set_modes(&mut attr);
        self.set_stacks(&mut attr);
        self.set_side_band(&mut attr);
        attr
    }

    fn set_sampling(&self, attr: &mut sys::perf_event_attr) {
        attr.sample_type = (PERF_SAMPLE_IDENTIFIER
            | PERF_SAMPLE_IP
            | PERF_SAMPLE_TID
            | PERF_SAMPLE_TIME
            | PERF_SAMPLE_CPU
            | PERF_SAMPLE_PERIOD) as u64;
        attr.read_format = PERF_FORMAT_ID as u64;
        if self.lost_counts {
            attr.read_format |= PERF_FORMAT_LOST as u64;
        }
        match self.sampling {
            Sampling::Hertz(hertz) => {
                attr.set_freq(1);
                attr.__bindgen_anon_1.sample_freq = hertz;
            }
            Sampling::Period(period) => attr.__bindgen_anon_1.sample_period = period,
        }
        attr.set_disabled(1);
        attr.set_inherit(1);
        attr.set_enable_on_exec(self.enable_on_exec.into());
        attr.set_precise_ip(self.precise.into());
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = self.wakeup_bytes;
    }

    fn set_modes(&self, attr: &mut sys::perf_event_attr) {
        attr.set_exclude_user((!self.event.user).into());
        attr.set_exclude_kernel((!self.event.kernel).into());
        attr.set_exclude_hv(1);
        attr.set_exclude_guest((self.event.source == Source::Cycles).into());
    }

    fn set_stacks(&self, attr: &mut sys::perf_event_attr) {
        match self.stacks {
            Stacks::None => {}
            Stacks::FramePointers => attr.sample_type |= PERF_SAMPLE_CALLCHAIN as u64,
            Stacks::Dump(bytes) => {
                attr.sample_type |= (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER) as u64;
                attr.sample_regs_user = arch::USER_REGISTERS;
                attr.sample_stack_user = bytes;
                if self.event.kernel {
                    // The kernel's own callers only: frame pointers say little of user code.
                    attr.sample_type |= PERF_SAMPLE_CALLCHAIN as u64;
                    attr.set_exclude_callchain_user(1);
                }
            }
        }
    }

    /// The records that tell which threads there are and what is mapped where.
    fn set_side_band(&self, attr: &mut sys::perf_event_attr) {
        attr.set_sample_id_all(1);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_build_id(self.build_ids.into());
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
    }
}

fn kind(source: Source) -> (u32, u64) {
    match source {
        Source::Cycles => (
            sys::PERF_TYPE_HARDWARE,
            sys::PERF_COUNT_HW_CPU_CYCLES as u64,
        ),
        Source::CpuClock => (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK as u64),
        Source::TaskClock => (
            sys::PERF_TYPE_SOFTWARE,
            sys::PERF_COUNT_SW_TASK_CLOCK as u64,
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn setup() -> Setup {
        Setup {
            event: Event::new(Source::Cycles),
            sampling: Sampling::Hertz(999),
            stacks: Stacks::Dump(4096),
            enable_on_exec: true,
            precise: 0,
            build_ids: true,
            lost_counts: true,
            wakeup_bytes: 4096,
        }
    }

    #[test]
    fn user_only_events_ask_for_no_kernel_chain() {
        let mut setup = setup();
        let chain = |setup: &Setup| setup.attr().sample_type & PERF_SAMPLE_CALLCHAIN as u64 != 0;
        assert!(chain(&setup));
        setup.event.kernel = false;
        assert!(!chain(&setup));
        assert_eq!(setup.attr().exclude_kernel(), 1);
    }

    #[test]
    fn bytes_are_as_long_as_they_say() {
        let bytes = setup().attr_bytes();
        assert_eq!(bytes.len(), ATTR_SIZE);
        assert_eq!(bytes.get(4..8), Some(&(ATTR_SIZE as u32).to_ne_bytes()[..]));
    }
}
