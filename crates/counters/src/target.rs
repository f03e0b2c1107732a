//! What is counted, and how.

use prof_events::counting::Inherit;
use prof_model::{Pid, Tid};

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// What the thread does that opens the counter, whichever thread reads it later.
    ThisThread,
    /// What a thread does.
    Thread(Tid),
    /// What the threads of a process do that there are now. Those to come count with
    /// [`Inherit::Threads`].
    Process(Pid),
    /// All that happens on a CPU.
    Cpu(u32),
    /// All that happens on all CPUs.
    AllCpus,
    /// What the processes of a cgroup do, on all CPUs: an absolute path, or one relative to where
    /// cgroups are mounted.
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
    /// Whether the target's new threads and processes count as well. What they counted is added
    /// when they are read or end.
    pub inherit: Inherit,
    /// Whether counting begins by itself when the target calls `exec`.
    pub enable_on_exec: bool,
    /// Whether the group must be on the hardware all the time; if there is no room for it,
    /// reading it is an error.
    pub pinned: bool,
    /// Whether the group must be alone on the hardware.
    pub exclusive: bool,
}
