//! From an event's spec to the kernel's `perf_event_attr`.

pub(crate) mod arch;
pub(crate) mod definition;
pub(crate) mod encoding;
pub(crate) mod perf_event_attr;
pub(crate) mod sample_period;
pub(crate) mod setup;
