//! Our own process and those that are sampled: started, signalled, read, waited for.

pub(crate) mod cpus;
pub(crate) mod launcher;
pub(crate) mod memory;
pub(crate) mod poll;
pub(crate) mod signals;
pub(crate) mod streams;
