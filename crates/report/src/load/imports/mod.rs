//! Files of other tools that hold names instead of addresses.

pub(super) mod cpuprofile;
pub(super) mod folded;
pub(super) mod gperftools;
mod imported;
mod mapped;
pub(super) mod perf_script;
pub(super) mod pprof;
