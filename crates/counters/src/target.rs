//! Targets and options.

use prof_events::counting::Inherit;
use prof_model::{Pid, Tid};

/// The target of counting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// The thread that opens the counter, whichever thread reads it later.
    ThisThread,
    /// A thread.
    Thread(Tid),
    /// The current threads of a process. Later ones count with [`Inherit::Threads`].
    Process(Pid),
    /// Everything on a CPU.
    Cpu(u32),
    /// Everything on all CPUs.
    AllCpus,
    /// The processes of a cgroup, on all CPUs: an absolute path, or one relative to the cgroup
    /// mount.
    Cgroup(String),
}

impl Target {
    /// Whether more than one's own processes are counted.
    pub(crate) fn is_system_wide(&self) -> bool {
        matches!(self, Self::Cpu(_) | Self::AllCpus | Self::Cgroup(_))
    }
}

/// How a target is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the target's new threads and processes count as well. Their counts are added when
    /// they are read or end.
    pub inherit: Inherit,
    /// Whether counting begins by itself when the target calls `exec`.
    pub enable_on_exec: bool,
    /// Whether the group must always be on the hardware; if it does not fit, reading it is an
    /// error.
    pub pinned: bool,
    /// Whether the group must be alone on the hardware.
    pub exclusive: bool,
}
