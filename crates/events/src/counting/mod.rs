//! Counting without sampling: one descriptor for each event and place.
//!
//! ```text
//!   EventSpec ──(attr)──> RawCounter ── read, group read, enable, disable     one system call each
//!                             └─ UserPage ── read without a system call (rdpmc), where possible
//! ```
//!
//! This is the layer of system calls. The crate `prof-counters` makes counters, groups and
//! snapshots of it.

mod attr;
mod cgroup;
mod page;
mod probe;
mod raw;
mod reason;
mod thread_record;
mod threads;
mod usage;

pub use crate::permission::{Refusal, Rights, Subject};
pub use attr::{AttrOptions, Inherit, attr_bytes};
pub use cgroup::{CgroupError, find_cgroup};
pub use page::{UserCount, UserPage};
pub use probe::{Ability, Answer, Prober};
pub use raw::{GroupCount, Place, RawCount, RawCounter};
pub use reason::{RefusalFacts, why_not};
pub use threads::{ThreadCount, ThreadCounters, ThreadCountersError, ThreadCounts};
pub use usage::Usage;
