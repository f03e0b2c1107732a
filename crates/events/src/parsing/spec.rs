//! The parsed form of an event's name: plain data.

use std::ffi::CString;
use std::fmt;

use super::modifiers::Modifiers;
use super::terms::Terms;

/// One event: what to count, in which code, and the requested options.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSpec {
    /// The event's name, without modifiers: as typed, or the value of the term `name=`. Displaying
    /// the spec adds the modifiers.
    pub name: String,
    /// The kind of event.
    pub family: Family,
    /// The kernel's encoding.
    pub encoding: Encoding,
    /// Which code counts, and how the event is scheduled.
    pub modifiers: Modifiers,
    /// The terms between the slashes that are not part of the encoding.
    pub terms: Terms,
    /// The value of a count of one: a factor and its unit, from the PMU's `NAME.scale` and
    /// `NAME.unit` in sysfs.
    pub scale: Option<(f64, String)>,
    /// The only CPUs on which the event may be opened (the PMU's `cpumask`), if it counts for
    /// more than one CPU at a time, as the uncore's PMUs do.
    pub cpus: Option<Vec<u32>>,
}

impl EventSpec {
    /// The event with kernel and hypervisor code left out, as `perf_event_paranoid` = 2 requires;
    /// `None` if the modifiers were given or there is nothing to leave out.
    pub fn user_only(&self) -> Option<Self> {
        if self.modifiers.explicit_modes || !self.modifiers.kernel {
            return None;
        }
        let mut spec = self.clone();
        spec.modifiers.kernel = false;
        spec.modifiers.hypervisor = false;
        Some(spec)
    }

    /// Whether the kernel itself counts how often it happens: no hardware does, and it is no clock.
    pub(crate) fn is_counted_by_kernel(&self) -> bool {
        !self.family.is_hardware() && !self.is_clock()
    }

    /// Whether the count is a time in nanoseconds.
    pub fn is_clock(&self) -> bool {
        const SOFTWARE: u32 = perf_event_open_sys::bindings::PERF_TYPE_SOFTWARE;
        const CLOCKS: [u64; 2] = [
            perf_event_open_sys::bindings::PERF_COUNT_SW_CPU_CLOCK as u64,
            perf_event_open_sys::bindings::PERF_COUNT_SW_TASK_CLOCK as u64,
        ];
        self.encoding.kind == SOFTWARE && CLOCKS.contains(&self.encoding.config)
    }

    /// Whether this event happens only in kernel code, so that it is always zero if that is left
    /// out: context switches, migrations and the like.
    pub fn happens_in_kernel_only(&self) -> bool {
        use perf_event_open_sys::bindings as sys;
        let config = self.encoding.config;
        self.encoding.kind == sys::PERF_TYPE_SOFTWARE
            && [
                sys::PERF_COUNT_SW_CONTEXT_SWITCHES,
                sys::PERF_COUNT_SW_CPU_MIGRATIONS,
                sys::PERF_COUNT_SW_CGROUP_SWITCHES,
            ]
            .iter()
            .any(|&event| u64::from(event) == config)
    }
}

/// The name with its modifiers, in an order of their own: `cycles:u`, `cpu/event=0x3c/k`.
impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modifiers = self.modifiers.to_string();
        let separator = match modifiers.is_empty() || self.name.ends_with('/') {
            true => "",
            false => ":",
        };
        write!(f, "{}{separator}{modifiers}", self.name)
    }
}

/// The kernel's encoding: the fields of `perf_event_attr` that select the event
/// (include/uapi/linux/perf_event.h).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// `type`: one of `PERF_TYPE_*`, or a PMU's number from its `type` file in sysfs.
    pub kind: u32,
    /// `config`.
    pub config: u64,
    /// `config1`; `bp_addr` of a breakpoint.
    pub config1: u64,
    /// `config2`; `bp_len` of a breakpoint, `probe_offset` of a uprobe.
    pub config2: u64,
    /// `config3` (Linux 6.3).
    pub config3: u64,
    /// `bp_type` of a breakpoint: `HW_BREAKPOINT_R`, `_W` and `_X`.
    pub breakpoint: u32,
    /// The file of a uprobe, to which `config1` must point (`uprobe_path`).
    pub path: Option<CString>,
}

/// The kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// A generic event that the kernel translates for the CPU (`PERF_TYPE_HARDWARE`).
    Hardware,
    /// A generic event of the caches (`PERF_TYPE_HW_CACHE`).
    Cache,
    /// An event of the kernel's own (`PERF_TYPE_SOFTWARE`).
    Software,
    /// An event by the CPU's own number (`PERF_TYPE_RAW`), or by type and config in numbers.
    Raw,
    /// An event of a PMU in sysfs.
    Pmu(String),
    /// A tracepoint of the kernel (`PERF_TYPE_TRACEPOINT`).
    Tracepoint,
    /// An access to an address (`PERF_TYPE_BREAKPOINT`).
    Breakpoint,
    /// A call of, or an arrival at, an instruction in a file.
    Uprobe,
    /// A return from a function in a file.
    Uretprobe,
}

impl Family {
    /// Whether it is the CPU's hardware that counts.
    pub fn is_hardware(&self) -> bool {
        matches!(
            self,
            Self::Hardware | Self::Cache | Self::Raw | Self::Pmu(_)
        )
    }

    /// Whether it is a probe on a function of a program.
    pub fn is_uprobe(&self) -> bool {
        matches!(self, Self::Uprobe | Self::Uretprobe)
    }
}

/// Events that were written together: `{a,b}` counts all at the same time or none. An event
/// outside of braces is a group of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct EventGroup {
    /// The events; the first one leads. Never empty.
    pub events: Vec<EventSpec>,
    /// Whether the events stood in braces.
    pub braces: bool,
    /// `:S` (perf's leader sampling): only the leader samples, and reads the others' counts.
    pub leader_sampling: bool,
}
