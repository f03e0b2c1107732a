//! Files of other tools that hold names instead of addresses.

pub(super) mod folded;
mod imported;
pub(super) mod pprof;
