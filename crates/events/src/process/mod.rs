//! Our own process and those that are sampled: started, signalled, read, waited for.

pub(crate) mod cpus;
pub(crate) mod duplicate_signals;
mod ending;
pub(crate) mod launcher;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod passed_signals;
pub(crate) mod poll;
pub(crate) mod signal_calls;
pub(crate) mod signals;
pub(crate) mod streams;
pub(crate) mod thread_signal;
pub(crate) mod worker;
pub(crate) mod worker_state;
