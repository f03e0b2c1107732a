//! What to sample, and how.

pub(crate) mod allocators;
pub(crate) mod event;
pub(crate) mod sizes;
pub(crate) mod target_threads;

use event::GroupRequest;
use target_threads::Threads;

/// What to sample and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which threads.
    pub threads: Threads,
    /// The event. Never empty.
    pub groups: Vec<GroupRequest>,
    /// Whether samples with stack dumps also have the kernel's chain of frame pointers.
    pub user_chains: bool,
    /// Bytes of each CPU's ring; `None`: suitable for the rest.
    pub ring_bytes: Option<u64>,
    /// Whether sampling can be enabled and disabled on the way.
    pub toggling: Toggling,
}

impl Request {
    /// Whether a separate event must report threads and mappings: the others may be disabled, or do
    /// not see what happens outside of a cgroup.
    pub(crate) fn needs_tracking(&self) -> bool {
        let cgroup = match &self.threads {
            Threads::OnCpus(wide) => wide.cgroup.is_some(),
            _ => false,
        };
        self.toggling != Toggling::Never || cgroup
    }
}

/// Whether sampling can be disabled and enabled while it is recorded. One more event, which does
/// nothing else, reports threads and mappings all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toggling {
    /// It is always enabled.
    #[default]
    Never,
    /// It begins enabled.
    BeginsEnabled,
    /// It begins disabled.
    BeginsDisabled,
}
