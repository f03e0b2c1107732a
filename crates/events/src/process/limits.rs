//! The limits on our resources, which are raised for us and not for the programs that we start.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Locked memory (ring buffers), and open files (an event for each thread and CPU).
const RAISED: [Resource; 2] = [Resource::Memlock, Resource::Nofile];

/// The limits before they were raised.
static BEFORE: OnceLock<Limits> = OnceLock::new();

/// Raises the soft limits on locked memory and on open files to the hard ones. Limits that cannot
/// be raised stay.
pub fn raise_limits() {
    for (resource, limit) in BEFORE.get_or_init(Limits::read).0 {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        let _ = setrlimit(resource, raised);
    }
}

/// The limits that we were started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits([(Resource, Rlimit); RAISED.len()]);

impl Limits {
    fn read() -> Self {
        Self(RAISED.map(|resource| (resource, getrlimit(resource))))
    }

    /// Those that were raised; `None` if none were.
    pub(crate) fn before() -> Option<Self> {
        BEFORE.get().copied()
    }

    /// Restores them in this process, for the program that it executes. It may be called between
    /// fork and exec.
    pub(crate) fn restore(&self) {
        for (resource, limit) in self.0 {
            let _ = setrlimit(resource, limit);
        }
    }
}
