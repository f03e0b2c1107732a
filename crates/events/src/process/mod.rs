//! Our own process and those that are sampled: started, signalled, read, waited for.

pub(crate) mod cpus;
mod ending;
pub(crate) mod launcher;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod poll;
pub(crate) mod signals;
pub(crate) mod streams;
