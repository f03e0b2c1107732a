//! The requested events.

use anyhow::{Result, anyhow};
use prof_counters::{Catalog, EventGroup};

use crate::flags::StatFlags;

/// The events to count.
pub(super) struct Selection {
    pub(super) groups: Vec<EventGroup>,
    /// Whether the user named them: then none is left out.
    pub(super) by_name: bool,
}

/// The default events: those of perf, as far as they are available.
const DEFAULT: &str = "context-switches,cpu-migrations,page-faults,cycles,stalled-cycles-frontend,\
     stalled-cycles-backend,instructions,branches,branch-misses";

impl Selection {
    pub(super) fn new(flags: &StatFlags) -> Result<Self> {
        let by_name = !flags.events.is_empty();
        let text = match by_name {
            true => flags.events.join(","),
            false if flags.is_system_wide() => format!("cpu-clock,{DEFAULT}"),
            false => format!("task-clock,{DEFAULT}"),
        };
        let groups = Catalog::system()
            .parse(&text)
            .map_err(|error| anyhow!("{error}"))?;
        Ok(Self { groups, by_name })
    }
}

impl StatFlags {
    pub(super) fn is_system_wide(&self) -> bool {
        self.all_cpus || self.cgroup.is_some()
    }
}
